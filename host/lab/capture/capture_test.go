package capture

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"rdmarun/host/lab"
	"rdmarun/host/pcapng"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// blocks are what a host says of one interface, on which packets are sent at those times.
func blocks(name string, times ...uint64) []byte {
	var made bytes.Buffer
	w := &pcapng.Writer{To: &made}
	_ = w.Section(pcapng.Section{Application: "test"}) // a buffer takes all
	_ = w.Interface(pcapng.Interface{Name: name})
	for i, at := range times {
		_ = w.Packet(pcapng.Packet{
			Time: at, Length: 60, Bytes: []byte{byte(i), 2, 3}, Comments: []string{"step\x1b[2J"},
		})
	}
	_ = w.Statistics(pcapng.Statistics{Time: 9})
	return made.Bytes()
}

// blocksOf are the blocks of a file, which has nothing else.
func blocksOf(t *testing.T, path string) (blocks [][]byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for len(data) > 0 {
		block, err := pcapng.Cut(data)
		if err != nil || block == nil {
			t.Fatalf("%s: %d bytes are no block: %v", path, len(data), err)
		}
		blocks = append(blocks, block)
		data = data[len(block):]
	}
	return blocks
}

// written is what a file has: a word for each block.
func written(t *testing.T, path string) (words []string) {
	t.Helper()
	for _, block := range blocksOf(t, path) {
		var err error
		switch pcapng.KindOf(block) {
		case pcapng.KindSection:
			words = append(words, "section")
		case pcapng.KindInterface:
			var named pcapng.Interface
			named, err = pcapng.ParseInterface(block)
			words = append(words, named.Name, named.Description)
		case pcapng.KindPacket:
			var p pcapng.Packet
			p, err = pcapng.ParsePacket(block)
			words = append(words, fmt.Sprintf("%d@%d %s", p.Interface, p.Time, strings.Join(p.Comments, " ")))
		case pcapng.KindStatistics:
			var counted pcapng.Statistics
			counted, err = pcapng.ParseStatistics(block)
			words = append(words, fmt.Sprintf("statistics %d", counted.Interface))
		default:
			t.Errorf("a block of kind %d", pcapng.KindOf(block))
		}
		if err != nil {
			t.Error(err)
		}
	}
	return words
}

func collect(t *testing.T, hosts ...string) (*Collector, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "capture.pcapng")
	c, err := Collect(path, 0, hosts)
	if err != nil {
		t.Fatal(err)
	}
	return c, path
}

// TestMerge: packets of all hosts are in the order of the controller's clock, and what a host says is text.
func TestMerge(t *testing.T) {
	c, path := collect(t, "a", "b", "lost", "stranger")
	c.Take("b", lab.SubjectPackets, blocks("client", 1, 4))
	for _, block := range [][]byte{blocks("ser\x1bver", 5, 8)} { // its clock is ahead
		c.Take("a", lab.SubjectPackets, block)
	}
	c.Take("nobody", lab.SubjectPackets, blocks("nobody", 1))
	c.Take("stranger", lab.SubjectPackets, []byte("no blocks"))
	for _, host := range []string{"a", "b", "stranger"} {
		raw, err := json.Marshal(lab.Captured{Beyond: map[string]uint64{"b": 7}[host]})
		if err != nil {
			t.Fatal(err)
		}
		c.Take(host, lab.SubjectCaptured, raw)
	}
	c.Take("b", lab.SubjectPackets, blocks("too late", 1))
	c.Await(t.Context(), func(host string) bool { return host == "lost" })
	lacks, err := c.Finish("test", map[string]record.Clock{"a": {Ahead: 2, Within: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"section", "a: ser␛ver", "times +-1.000 ms", "b: client", "times +-0.000 ms",
		"1@1 step␛[2J", "0@3 step␛[2J", "1@4 step␛[2J", "statistics 1", "0@6 step␛[2J", "statistics 0",
	}
	if got := written(t, path); len(got) != len(want) || got[1] != want[1] || got[2] != want[2] ||
		got[5] != "1@1 step␛[2J" || !slices.Equal(got, want) {
		t.Errorf("%q\nnot %q", got, want)
	}
	want = []string{
		"host b: its last 7 packets are cut, since a host has room for 256MiB here",
		"host lost: its packets end early: it was lost",
		"host stranger: packets are missing: malformed pcapng block",
	}
	if !slices.Equal(lacks, want) {
		t.Errorf("%q", lacks)
	}
}

// TestTooMuch: a host that sends more than it may is heard no more.
func TestTooMuch(t *testing.T) {
	c, path := collect(t, "a")
	c.wanted.Most = int64(len(blocks("x", 1)))
	c.Take("a", lab.SubjectPackets, blocks("x", 1))
	c.Take("a", lab.SubjectPackets, blocks("x", 2))
	c.Await(t.Context(), func(string) bool { return false })
	lacks, err := c.Finish("test", nil)
	if err != nil || !slices.Equal(lacks, []string{"host a: packets are missing: it sends more than it may"}) {
		t.Errorf("%q %v", lacks, err)
	}
	if got := written(t, path); len(got) != 5 {
		t.Errorf("%q", got)
	}
}

// TestAwait: an end that has not come is not waited for where the run is ended.
func TestAwait(t *testing.T) {
	c, _ := collect(t, "a")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	c.Await(ended, func(string) bool { return false })
	if _, err := c.Finish("test", nil); err != nil {
		t.Error(err)
	}
}

// TestSend: what a provider sends comes in messages, as far as the budget goes, and with its counts.
func TestSend(t *testing.T) {
	for name, most := range map[string]int64{"all": 1 << 20, "some": 2000} {
		t.Run(name, func(t *testing.T) {
			var came []byte
			var end lab.Captured
			sender, err := Send(lab.Capture{Most: most}, "test", func(what string, data []byte) error {
				if what == lab.SubjectPackets {
					came = append(came, data...)
					return nil
				}
				return json.Unmarshal(data, &end)
			})
			if err != nil {
				t.Fatal(err)
			}
			checked := scenario.Check([]string{"../../../scenarios/rping.yaml"}, scenario.Params{})
			totals, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
				ProviderName: rdmacore.Soft, TimeScale: 1, Repeat: 1, Capture: sender.Capture(),
				Warn: func(text string) { t.Error(text) },
			})
			if err != nil || totals.Passed != 1 {
				t.Fatalf("%+v %v", totals, err)
			}
			if err := sender.Close(); err != nil {
				t.Fatal(err)
			}
			count := uint64(0)
			for rest := came; len(rest) > 0; {
				block, err := pcapng.Cut(rest)
				if err != nil || block == nil {
					t.Fatalf("%d bytes are no block: %v", len(rest), err)
				}
				if pcapng.KindOf(block) == pcapng.KindPacket {
					count++
				}
				rest = rest[len(block):]
			}
			if count+end.Beyond < 60 || end.Missing != 0 || end.Error != "" || (end.Beyond > 0) != (most < 1<<20) ||
				int64(len(came)) > most {
				t.Errorf("%d packets of %d in %d bytes, %+v", count, count+end.Beyond, len(came), end)
			}
		})
	}
}

// TestManyInterfaces: a host names some interfaces, and no more.
func TestManyInterfaces(t *testing.T) {
	whole := blocks("server")
	section, err := pcapng.Cut(whole)
	if err != nil {
		t.Fatal(err)
	}
	one, err := pcapng.Cut(whole[len(section):])
	if err != nil {
		t.Fatal(err)
	}
	said := append(slices.Clone(section), bytes.Repeat(one, maxInterfaces+1)...)
	var file bytes.Buffer
	c := &gathering{sources: map[string]*source{"a": {spool: memory{bytes.NewReader(said)}, size: int64(len(said))}}}
	err = c.merge(&pcapng.Writer{To: &file}, "test", "", nil)
	lacks := c.lacks()
	if err != nil || len(lacks) != 1 || !strings.Contains(lacks[0], pcapng.ErrMalformed.Error()) {
		t.Errorf("%q, %v", lacks, err)
	}
}

// FuzzMerge: whatever a host says, the file has whole blocks.
func FuzzMerge(f *testing.F) {
	whole := blocks("server", 1, 2, 3)
	f.Add(whole)
	f.Add(whole[:len(whole)-5])
	f.Add(binary.LittleEndian.AppendUint32(slices.Clone(whole[:40]), 12))
	f.Fuzz(func(t *testing.T, said []byte) {
		var file bytes.Buffer
		c := &gathering{sources: map[string]*source{"a": {
			spool: memory{bytes.NewReader(said)}, size: int64(len(said)),
		}}}
		if err := c.merge(&pcapng.Writer{To: &file}, "test", "", nil); err != nil {
			t.Error(err)
		}
		for data := file.Bytes(); len(data) > 0; {
			block, err := pcapng.Cut(data)
			if err != nil || block == nil {
				t.Fatalf("%d bytes are no block: %v", len(data), err)
			}
			data = data[len(block):]
		}
	})
}

// memory is what a host has said.
type memory struct{ *bytes.Reader }

func (memory) Write([]byte) (int, error) { return 0, os.ErrInvalid }
func (memory) Close() error              { return nil }
