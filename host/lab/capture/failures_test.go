package capture

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/pcapng"
)

// packetAt is the block of a packet of so many bytes at a time.
func packetAt(at uint64, length int) []byte {
	var out bytes.Buffer
	w := &pcapng.Writer{To: &out}
	_ = w.Packet(pcapng.Packet{Time: at, Length: uint32(length), Bytes: make([]byte, length)}) // a buffer takes all
	return out.Bytes()
}

// keptIn are the times of the packets in a file, and its comment.
func keptIn(t *testing.T, path string) (times []uint64, comment string) {
	t.Helper()
	for _, block := range blocksOf(t, path) {
		var err error
		switch pcapng.KindOf(block) {
		case pcapng.KindSection:
			var section pcapng.Section
			section, err = pcapng.ParseSection(block)
			comment = section.Comment
		case pcapng.KindPacket:
			var at uint64
			at, err = pcapng.PacketTime(block)
			times = append(times, at)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return times, comment
}

// TestCaptureIsCutAroundTheFailure: what is kept follows each other, ends a little after the failure, and is bounded,
// and the file says how much is left out.
func TestCaptureIsCutAroundTheFailure(t *testing.T) {
	const length, failed = 4096, 6000
	const halfBefore, maxAfter = maxAround / third, maxAround / sixth
	for _, test := range []struct {
		count         int
		first, last   uint64 // at the latest, at the earliest
		before, after bool   // are left out
	}{
		{20, 0, 19, false, false},
		{failed + 100, failed - halfBefore/(length+200), failed + 99, true, false},
		{failed + 5000, failed - halfBefore/(length+200), failed + maxAfter/(length+200), true, true},
	} {
		failures, err := OnFailure(filepath.Join(t.TempDir(), "captures"), "test", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		begun, err := failures.Begin("case", 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := begun.(*recording)
		r.Failed(failed)
		r.Failed(3) // the first time counts
		for at := range test.count {
			r.add(packetAt(uint64(at), length))
		}
		path, err := r.End(true)
		if err != nil {
			t.Fatal(err)
		}
		times, comment := keptIn(t, path)
		first, last := times[0], times[len(times)-1]
		if first > test.first || last < test.last || last-first != uint64(len(times)-1) {
			t.Errorf("%d packets: %d to %d are kept, %d in all", test.count, first, last, len(times))
		}
		if size := len(times) * length; size > 2*halfBefore+maxAfter {
			t.Errorf("%d packets: %d bytes are kept", test.count, size)
		}
		earlier, later := fmt.Sprintf("; %d earlier ones", first),
			fmt.Sprintf("; %d later ones", uint64(test.count)-1-last)
		if strings.Contains(comment, earlier) != test.before || strings.Contains(comment, later) != test.after {
			t.Errorf("%d packets: %s", test.count, comment)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
}

// TestCapturesOfFailuresAreBounded: the first failures have files of their own, and a case that passes, or sends
// nothing, none.
func TestCapturesOfFailuresAreBounded(t *testing.T) {
	folder := t.TempDir()
	failures, err := OnFailure(folder, "test", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	end := func(id string, number, packets int, failed bool) string {
		begun, err := failures.Begin(id, number, nil)
		if err != nil {
			t.Fatal(err)
		}
		for range packets {
			begun.(*recording).add(packetAt(1, 64))
		}
		path, err := begun.End(failed)
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Base(path)
	}
	for _, test := range []struct {
		id     string
		number int
		want   string
	}{
		{"a/b.yaml::c d", 0, "a-b.yaml-c-d.pcapng"}, {"a/b.yaml::c:d", 0, "a-b.yaml-c-d=2.pcapng"},
		{"a/b.yaml::c d", 2, "a-b.yaml-c-d.3.pcapng"},
		{"../" + strings.Repeat("x", 300), 0, strings.Repeat("x", maxName) + ".pcapng"},
	} {
		if got := end(test.id, test.number, 1, true); got != test.want {
			t.Errorf("%q, run %d: %s, want %s", test.id, test.number, got, test.want)
		}
	}
	end("silent", 0, 0, true)
	end("a/b.yaml::c d", 2, 1, false) // it passes now
	for i := range MaxFiles {
		end("again", i, 1, true)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != MaxFiles-1 || failures.Beyond() != 4 {
		t.Errorf("%d files, %d beyond, %v", len(entries), failures.Beyond(), err)
	}
}
