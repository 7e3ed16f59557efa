package capture

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/lab"
	"rdmarun/host/pcapng"
	"rdmarun/host/record"
)

// failuresOf are those of hosts, of which some are gone.
func failuresOf(t *testing.T, gone string, hosts ...string) *LabFailures {
	t.Helper()
	failures, err := OnFailure(t.TempDir(), "test", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	return OnFailureOf(failures, hosts, map[string]record.Clock{"a": {Ahead: 2}}, func(host string) bool {
		return host == gone
	})
}

// sends has a host send what it has kept of a run of a case.
func sends(t *testing.T, to *LabFailures, host string, failed bool, said []byte) {
	t.Helper()
	sender := SendFailures(to.Wanted(), "test", func(what string, data []byte) error {
		to.Take(host, what, data)
		return nil
	})
	begun, err := sender.Begin("whatever", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := begun.(*sentRecording)
	for len(said) > 0 {
		block, err := pcapng.Cut(said)
		if err != nil {
			t.Fatal(err)
		}
		r.add(block)
		said = said[len(block):]
	}
	if _, err := r.End(failed); err != nil {
		t.Error(err)
	}
}

// begins begins a run of a case on hosts.
func begins(t *testing.T, f *LabFailures, id string, hosts ...string) (end func(failed bool) (name, wrong string)) {
	t.Helper()
	r, err := f.Begin(id, 0, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return func(failed bool) (name, wrong string) {
		path, err := r.End(failed)
		if err != nil {
			wrong = err.Error()
		}
		return filepath.Base(path), wrong
	}
}

// TestFailuresOfALab: the packets of a case's hosts are in one file, on the controller's clock, and a case that passes
// has none.
func TestFailuresOfALab(t *testing.T) {
	f := failuresOf(t, "", "a", "b", "idle")
	end := begins(t, f, "x.yaml::one", "a", "b")
	sends(t, f, "a", true, blocks("server", 5, 8))
	sends(t, f, "b", true, blocks("client", 1, 4))
	sends(t, f, "idle", true, blocks("idle", 1))
	if name, wrong := end(true); name != "x.yaml-one.pcapng" || wrong != "" {
		t.Fatal(name, wrong)
	}
	path := filepath.Join(f.folder, "x.yaml-one.pcapng")
	want := []string{
		"section", "a: server", "times +-0.000 ms", "b: client", "times +-0.000 ms",
		"1@1 step␛[2J", "0@3 step␛[2J", "1@4 step␛[2J", "statistics 1", "0@6 step␛[2J", "statistics 0",
	}
	if got := written(t, path); !slices.Equal(got, want) {
		t.Errorf("%q\nnot %q", got, want)
	}
	if _, comment := keptIn(t, path); comment != aroundFailure {
		t.Error(comment)
	}
	end = begins(t, f, "x.yaml::one", "a", "b")
	sends(t, f, "a", false, blocks("server", 5))
	if name, wrong := end(false); name != "." || wrong != "" {
		t.Error(name, wrong)
	}
	if left, err := os.ReadDir(f.folder); err != nil || len(left) != 0 {
		t.Error(left, err)
	}
	end = begins(t, f, "silent", "a")
	sends(t, f, "a", true, nil)
	if name, wrong := end(true); name != "." || wrong != "" {
		t.Error(name, wrong)
	}
}

// TestFailuresTooLarge: a host keeps no more than the controller wants, and the file says how much is left out.
func TestFailuresTooLarge(t *testing.T) {
	f := failuresOf(t, "", slices.Repeat([]string{"a"}, 1<<10)...)
	end := begins(t, f, "x", "a")
	said := blocks("server")
	for at := range 2 * f.wanted.Most / 4096 {
		said = append(said, packetAt(uint64(at), 4096)...)
	}
	sends(t, f, "a", true, said)
	name, wrong := end(true)
	if wrong != "" {
		t.Fatal(wrong)
	}
	info, err := os.Stat(filepath.Join(f.folder, name))
	if err != nil || info.Size() > f.wanted.Most || info.Size() < f.wanted.Most/third {
		t.Error(info, err)
	}
	if _, comment := keptIn(
		t, filepath.Join(f.folder, name),
	); !strings.HasSuffix(comment, " earlier ones are left out") {
		t.Error(comment)
	}
}

// TestFailuresOfStrangers: what an agent says names no file, fills no disk, and spoils nothing of the others.
func TestFailuresOfStrangers(t *testing.T) {
	f := failuresOf(t, "dead", "a", "b", "dead", "loud", "strange")
	f.Take("a", lab.SubjectPackets, blocks("too early", 1))
	end := begins(t, f, "../../x", "a", "dead", "loud", "strange")
	sends(t, f, "a", true, blocks("server", 3))
	sends(t, f, "nobody", true, blocks("nobody", 1))
	sends(t, f, "b", true, blocks("not of the case", 1))
	f.Take("dead", lab.SubjectPackets, blocks("client", 1))
	f.Take("loud", lab.SubjectPackets, blocks("loud"))
	for range f.wanted.Most>>20 + 1 {
		f.Take("loud", lab.SubjectPackets, bytes.Repeat(packetAt(9, 1<<14), 1<<6))
	}
	f.Take("strange", lab.SubjectPackets, []byte("no blocks"))
	f.Take("strange", lab.SubjectCaptured, []byte(`{"earlier":-1}`))
	name, wrong := end(true)
	if name != "x.pcapng" {
		t.Error(name)
	}
	want := "host dead: its packets end early: it was lost; host loud: packets are missing: it sends more than it " +
		"may; host strange: packets are missing: malformed pcapng block"
	if wrong != want {
		t.Errorf("%s\nnot %s", wrong, want)
	}
	var named []string
	for _, word := range written(t, filepath.Join(f.folder, name)) {
		if strings.Contains(word, ": ") {
			named = append(named, word)
		}
	}
	if want := []string{"a: server", "dead: client", "loud: loud"}; !slices.Equal(named, want) {
		t.Errorf("%q, not %q", named, want)
	}
	f.Take("a", lab.SubjectPackets, blocks("too late", 1))
	for range MaxFiles {
		end := begins(t, f, "again", "a")
		sends(t, f, "a", true, blocks("server", 1))
		end(true)
	}
	if f.Beyond() != 1 {
		t.Errorf("%d failures have no file", f.Beyond())
	}
	f = failuresOf(t, "", "a")
	f.written = MaxWritten
	end = begins(t, f, "one byte too many", "a")
	sends(t, f, "a", true, blocks("server", 1))
	if name, wrong := end(true); name != "." || wrong != "" || f.Beyond() != 1 {
		t.Errorf("%s %s, %d failures have no file", name, wrong, f.Beyond())
	}
}

// TestFailuresThatComeLate: after a host has not sent its packets in time, nothing waits for it.  What it sends later
// is in no file.
func TestFailuresThatComeLate(t *testing.T) {
	f := failuresOf(t, "", "a", "slow")
	r, err := f.Begin("first", 0, []string{"a", "slow"})
	if err != nil {
		t.Fatal(err)
	}
	r.(*labRecording).silenceTimeout = time.Millisecond
	sends(t, f, "a", true, blocks("server", 1))
	if _, err := r.End(true); err == nil || err.Error() != "host slow: its packets end early: it was lost" {
		t.Error(err)
	}
	end := begins(t, f, "second", "a", "slow")
	f.Take("slow", lab.SubjectPackets, blocks("of the first", 1))
	sends(t, f, "a", true, blocks("server", 1))
	name, wrong := end(true)
	if wrong != "" {
		t.Error(wrong)
	}
	if got := written(t, filepath.Join(f.folder, name)); len(got) != 5 {
		t.Errorf("%q", got)
	}
}

// TestFailuresOfALostController: an agent reports that its controller does not answer, and continues.
func TestFailuresOfALostController(t *testing.T) {
	asked := 0
	sender := SendFailures(lab.Capture{Most: maxAround}, "test", func(string, []byte) error {
		asked++
		return context.DeadlineExceeded
	})
	begun, err := sender.Begin("x", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	begun.(*sentRecording).add(packetAt(1, 64))
	if _, err := begun.End(true); err == nil || asked != 1 {
		t.Errorf("%v, asked %d times", err, asked)
	}
}
