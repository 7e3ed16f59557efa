package wasm

import (
	"context"
	"slices"
	"testing"
)

// table is a line table of version 4 for a.c with this program.  Its first address is 0x10.
func lineTable(program ...byte) []byte {
	header := "\x01\x01\x01\xfb\x0e\x0d\x00\x01\x01\x01\x01\x00\x00\x00\x01\x00\x00\x01" + "dir\x00\x00" +
		"a.c\x00\x01\x00\x00\x00"
	content := append([]byte{4, 0, byte(len(header)), 0, 0, 0}, header...)
	content = append(content, 0, 5, 2, 0x10, 0, 0, 0)
	content = append(content, program...)
	return append([]byte{byte(len(content)), 0, 0, 0}, content...)
}

func TestLineTables(t *testing.T) {
	// Line 3 from 0x10, line 0 from 0x14, line 9 from 0x18 to 0x20.
	program := lineTable(3, 2, 1, 2, 4, 3, 0x7d, 1, 2, 4, 3, 9, 5, 7, 1, 2, 8, 0, 1, 1)
	for name, c := range map[string]struct {
		program []byte
		begins  uint64
		want    []string
	}{
		"all": {
			program, 0x10, []string{"", "dir/a.c:3", "dir/a.c:3", "dir/a.c:3", "dir/a.c:9:7", "dir/a.c:9:7", ""},
		},
		"two tables": {
			append(slices.Clone(program), program...), 0x10,
			[]string{"", "dir/a.c:3", "dir/a.c:3", "dir/a.c:3", "dir/a.c:9:7", "dir/a.c:9:7", ""},
		},
		"of other code":     {program, 0x11, make([]string, 7)},
		"nothing":           {nil, 0x10, make([]string, 7)},
		"cut off":           {program[:len(program)-5], 0x10, make([]string, 7)},
		"no file":           {lineTable(4, 2, 1, 2, 64, 0, 1, 1), 0x10, make([]string, 7)},
		"longer than it is": {append([]byte{0xff}, program[1:]...), 0x10, make([]string, 7)},
	} {
		tables := lineTables{program: c.program}
		got := tables.find([]uint64{0xf, 0x10, 0x13, 0x14, 0x18, 0x1f, 0x20}, func(address uint64) bool {
			return address == c.begins
		})
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

// The places of a metered module lead back to where each instruction was.
func TestPlacesBeforeMetering(t *testing.T) {
	module := read(t, "testdata/instructions.wasm")
	content := append(appendName(nil, ".debug_line"), lineTable()...)
	module = append(append(module, sectionCustom, byte(len(content))), content...)
	decoded, err := Decode(module)
	if err != nil {
		t.Fatal(err)
	}
	for name, rewrite := range map[string]func(context.Context) (Rewritten, error){
		"metered": decoded.Meter, "bounded": decoded.Bound,
	} {
		got, err := rewrite(context.Background())
		if err != nil || got.Lines == nil {
			t.Fatal(err, got.Lines)
		}
		if err := valid(t, got.Module); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		rewritten, err := decodeUnreserved(got.Module)
		if err != nil {
			t.Fatal(err)
		}
		before, after := codeOf(decoded), codeOf(rewritten)
		last := uint64(0)
		for _, each := range got.Lines.marks {
			if uint64(each.now) < last {
				t.Fatalf("%s: the marks are not in order: %v", name, got.Lines.marks)
			}
			last = uint64(each.now)
		}
		for now := range after {
			was := got.Lines.was(uint64(now))
			if was < uint64(len(before)) && inBodies(got.Lines, was) && !inserted(got.Lines, uint64(now)) &&
				before[was] != after[now] {
				t.Fatalf("%s: %#x is %#x, and was at %#x %#x", name, now, after[now], was, before[was])
			}
		}
	}
}

// codeOf is the content of a module's code section.
func codeOf(m *Module) []byte { return m.file[m.code:m.bodies[len(m.bodies)-1].end] }

// inBodies reports whether a place is behind the first body's local variables, and is not of the size of a body.
func inBodies(l *Lines, was uint64) bool {
	return len(l.marks) > 0 && was >= uint64(l.marks[0].was) &&
		!slices.ContainsFunc(l.bodies, func(body uint32) bool { return was < uint64(body) && was+2 >= uint64(body) })
}

// inserted reports whether a place is one of those that two marks have for one, or between bodies.
func inserted(l *Lines, now uint64) bool {
	for at := 1; at < len(l.marks); at++ {
		if from, to := l.marks[at-1], l.marks[at]; uint64(from.now) <= now && now < uint64(to.now) {
			return to.was-from.was != to.now-from.now
		}
	}
	return true
}

func TestFrameOffset(t *testing.T) {
	for line, want := range map[string]uint64{
		"0x2c: code:1": 0x2c, "0x2c: main.c:1": 0, "code:1": 0, "": 0, ".f(i32)": 0,
	} {
		if offset, ok := FrameOffset(line); offset != want && ok || ok != (want != 0) {
			t.Errorf("%s: %#x %v", line, offset, ok)
		}
	}
}

func FuzzLineTables(f *testing.F) {
	f.Add(lineTable(3, 2, 1, 2, 4, 3, 0x7d, 1, 2, 4, 3, 9, 5, 7, 1, 2, 8, 0, 1, 1), []byte("a\x00b\x00"))
	f.Add(
		[]byte(
			"\x20\x00\x00\x00\x05\x00\x04\x00\x10\x00\x00\x00\x01\x01\x01\x00\x01\x01\x01\x01\x1f\x01\x00\x00"+
				"\x00\x00\x02\x01\x1f\x02\x0b\x01",
		),
		[]byte("a.c\x00"),
	)
	f.Fuzz(func(_ *testing.T, program, strings []byte) {
		tables := lineTables{program: program, lineStrings: strings, strings: strings}
		tables.find([]uint64{0, 1, 0x10, 1 << 20, 1 << 40}, func(uint64) bool { return true })
	})
}
