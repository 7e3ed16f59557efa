package pcapng_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/pcapng"
)

var (
	section = pcapng.Section{Application: "rdmarun", Comment: "all of it"}
	named   = pcapng.Interface{Name: "server", Description: "192.0.2.1, é", SnapLength: 64}
	packet  = pcapng.Packet{
		Interface: 3, Time: 0x123456789abcdef0, Bytes: []byte{0x45, 1, 2}, Length: 60, Inbound: true,
		Comments: []string{"step", "lost by fault 1"},
	}
	counted = pcapng.Statistics{Interface: 3, Time: 1 << 33, Received: 1 << 34, Missing: 2}
)

// file is one of each block.
func file(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	w := pcapng.Writer{To: &out}
	if err := errors.Join(w.Section(section), w.Interface(named), w.Packet(packet), w.Statistics(counted)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func reader(data []byte) *bufio.Reader {
	return bufio.NewReaderSize(bytes.NewReader(data), pcapng.Longest)
}

// parse reads a block by its kind.
func parse(block []byte) (any, error) {
	switch pcapng.KindOf(block) {
	case pcapng.KindSection:
		return pcapng.ParseSection(block)
	case pcapng.KindInterface:
		return pcapng.ParseInterface(block)
	case pcapng.KindPacket:
		at, err := pcapng.PacketTime(block)
		p, other := pcapng.ParsePacket(block)
		if err == nil && other == nil && at != p.Time {
			return p, errors.New("two times of one packet")
		}
		return p, errors.Join(err, other)
	case pcapng.KindStatistics:
		return pcapng.ParseStatistics(block)
	}
	return nil, errors.ErrUnsupported
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	from := reader(file(t))
	for _, want := range []any{section, named, packet, counted} {
		block, err := pcapng.Next(from)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := parse(block); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, %v, not %+v", got, err, want)
		}
	}
	if block, err := pcapng.Next(from); err != io.EOF {
		t.Errorf("%v, %v after the end", block, err)
	}
}

func TestMalformedBlocks(t *testing.T) {
	whole := file(t)
	first, err := pcapng.Cut(whole)
	if err != nil {
		t.Fatal(err)
	}
	change := func(block []byte, offset int, value uint32) []byte {
		block = slices.Clone(block)
		binary.LittleEndian.PutUint32(block[offset:], value)
		return block
	}
	for name, data := range map[string][]byte{
		"a length of 8":            change(first, 4, 8),
		"a length of 13":           change(first, 4, 13),
		"a length beyond any":      change(first, 4, pcapng.Longest+4),
		"two lengths":              change(first, len(first)-4, uint32(len(first)+4)),
		"a part of a block":        first[:len(first)-1],
		"a part of a length":       first[:7],
		"another byte order":       change(first, 8, 0x4d3c2b1a),
		"a section without fields": {0x0a, 0x0d, 0x0d, 0x0a, 12, 0, 0, 0, 12, 0, 0, 0},
		"a packet without fields":  {6, 0, 0, 0, 12, 0, 0, 0, 12, 0, 0, 0},
		"counts without fields":    {5, 0, 0, 0, 12, 0, 0, 0, 12, 0, 0, 0},
		"a link type of Ethernet":  {1, 0, 0, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 20, 0, 0, 0},
		"an option beyond the end": {1, 0, 0, 0, 24, 0, 0, 0, 101, 0, 0, 0, 0, 0, 0, 0, 2, 0, 9, 0, 24, 0, 0, 0},
		"a packet beyond the end": {
			6, 0, 0, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0xff, 0xff, 0xff, 9, 0, 0, 0, 32, 0, 0,
			0,
		},
	} {
		block, err := pcapng.Next(reader(data))
		if err == nil {
			_, err = parse(block)
		}
		if !errors.Is(err, pcapng.ErrMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestCut: a part of a block is not an error, since the rest may come.
func TestCut(t *testing.T) {
	whole := file(t)
	for length := range whole[:20] {
		if block, err := pcapng.Cut(whole[:length]); block != nil || err != nil {
			t.Errorf("%d bytes: %v, %v", length, block, err)
		}
	}
}

// TestLongText: what does not fit into an option is cut.
func TestLongText(t *testing.T) {
	var out bytes.Buffer
	w := pcapng.Writer{To: &out}
	if err := w.Section(pcapng.Section{Comment: strings.Repeat("x", 70000)}); err != nil {
		t.Fatal(err)
	}
	s, err := pcapng.ParseSection(out.Bytes())
	if err != nil || len(s.Comment) != 1<<16-1 {
		t.Errorf("%d bytes, %v", len(s.Comment), err)
	}
}

// FuzzNext: whatever comes is read to an end, and what is read is written again.
func FuzzNext(f *testing.F) {
	f.Add(file(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		for from, left := reader(data), len(data); ; left-- {
			block, err := pcapng.Next(from)
			if err != nil {
				return
			}
			if left < 0 {
				t.Fatal("more blocks than bytes")
			}
			was, err := parse(block)
			if err != nil {
				continue
			}
			var out bytes.Buffer
			w := pcapng.Writer{To: &out}
			switch was := was.(type) {
			case pcapng.Section:
				err = w.Section(was)
			case pcapng.Interface:
				err = w.Interface(was)
			case pcapng.Packet:
				was.Comments = slices.DeleteFunc(was.Comments, func(text string) bool { return text == "" })
				err = w.Packet(was)
			case pcapng.Statistics:
				err = w.Statistics(was)
			}
			if err != nil {
				t.Fatal(err)
			}
			if out.Len() > pcapng.Longest {
				continue
			}
			again, err := parse(out.Bytes())
			if p, is := was.(pcapng.Packet); is && len(p.Comments) == 0 {
				p.Comments = nil
				was = p
			}
			if err != nil || !reflect.DeepEqual(again, was) {
				t.Fatalf("%+v, %v, not %+v", again, err, was)
			}
		}
	})
}
