package wasm

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Lines finds the source line of an instruction of a rewritten module. It uses the line tables of the original module
// (DWARF's .debug_line) or its source map, and how far the rewriting has moved each instruction.
//
// wazero reports the place of a frame in the code only together with a source line that it finds in DWARF itself. So
// the rewritten module gets DWARF that names no source at all (placeholders), and the offset is looked up here. The
// lookup has bounds that a hostile table cannot exceed, and reads tables of any version.
type Lines struct {
	tables lineTables
	mapped bool       // the module has a source map, in another file
	source *sourceMap // nil without one
	code   int        // where the content of the code section begins in the file
	marks  []mark
	bodies []uint32 // where the functions of the module as it was begin, ascending
}

// mark maps an offset in the rewritten code to the offset that it had before, up to the next mark.  Inserted code is
// between two marks with the same old offset.  Offsets are in the content of the code section.
type mark struct{ now, was uint32 }

// section takes one of DWARF's.
func (l *Lines) section(name string, content []byte) {
	if name == "sourceMappingURL" { // its text is not looked at: the map is in the folder of the module, or nowhere
		l.mapped = true
		return
	}
	if len(content) > maxLineTables {
		return
	}
	switch content = slices.Clone(content); name {
	case ".debug_line":
		l.tables.program = content
	case ".debug_line_str":
		l.tables.lineStrings = content
	case ".debug_str":
		l.tables.strings = content
	}
}

// HasLines reports whether the module has a line table, or says that it has a source map.
func (m *Module) HasLines() bool { return m.lines != nil }

// LinesOf decodes a module again, for the lines of one that was metered (Meter) or bounded (Bound) before.  Where they
// cannot be had, it gives those of a module without any.
func LinesOf(file []byte, metered bool) *Lines {
	if m, err := Decode(file); err == nil {
		if rewritten, err := m.rewrite(context.Background(), metered); err == nil && rewritten.Lines != nil {
			return rewritten.Lines
		}
	}
	return &Lines{}
}

// usable reports whether there is a table of lines, or can be a source map.
func (l *Lines) usable() bool { return l.mapped || len(l.tables.program) > 0 }

// WithSourceMap are the lines with those of a source map. A text that is none is ignored: it only makes errors better.
func (l *Lines) WithSourceMap(text []byte) *Lines {
	with := *l
	if source, err := parseSourceMap(text); err == nil {
		with.source = source
	}
	return &with
}

// maxLineTables is how long each of a module's sections of line tables may be, in bytes; longer ones are not looked at.
const maxLineTables = 16 << 20

// was is where an instruction of the rewritten module was before.
func (l *Lines) was(now uint64) uint64 {
	at := sort.Search(len(l.marks), func(i int) bool { return uint64(l.marks[i].now) > now })
	if at == 0 {
		return now
	}
	from := l.marks[at-1]
	was := uint64(from.was) + now - uint64(from.now)
	if at < len(l.marks) {
		was = min(was, uint64(l.marks[at].was))
	}
	return was
}

// Find gives the source of instructions, by their offsets in the code section of the rewritten module:
// "file:line:column", or "" for one without.
func (l *Lines) Find(offsets []uint64) []string {
	was := make([]uint64, len(offsets))
	for i, now := range offsets {
		was[i] = l.was(now)
	}
	found := l.tables.find(was, func(first uint64) bool {
		_, found := slices.BinarySearch(l.bodies, uint32(min(first, 1<<32-1)))
		return found
	})
	if l.source != nil {
		l.addMapped(found, was)
	}
	return found
}

// addMapped adds what the source map has of offsets that no table has.
func (l *Lines) addMapped(found []string, was []uint64) {
	columns := make([]uint64, len(was))
	for i := range was {
		columns[i] = was[i] + uint64(l.code)
	}
	mapped := l.source.find(columns, func(column uint64) uint64 {
		at := sort.Search(len(l.bodies), func(i int) bool { return uint64(l.bodies[i])+uint64(l.code) > column })
		if at == 0 {
			return column + 1 // before the first function
		}
		return uint64(l.bodies[at-1]) + uint64(l.code)
	})
	for i := range found {
		if found[i] == "" {
			found[i] = mapped[i]
		}
	}
}

// note adds a mark for a body that is being rewritten; until the body is placed, now is an offset in it.
func (l *Lines) note(now, was int) {
	if l != nil && len(l.marks) < maxMarks {
		l.marks = append(l.marks, mark{uint32(now), uint32(was)})
	}
}

// maxMarks bounds the marks; lines of the code behind them are not found.  A module has one or two for each
// loop, and one for each instruction with numbers that were written longer than they need be.
const maxMarks = 1 << 22

func (l *Lines) count() int {
	if l == nil {
		return 0
	}
	return len(l.marks)
}

// shift moves the marks from that index on, for instructions that are inserted at the entry of their body.
func (l *Lines) shift(from, entry, was, size int) {
	if l == nil {
		return
	}
	for i := range l.marks[from:] {
		l.marks[from+i].now += uint32(size)
	}
	l.marks = slices.Insert(l.marks, from, mark{uint32(entry), uint32(was)})
}

// addOffset adds the offset of a body to its marks, which begin at that index.
func (l *Lines) addOffset(from, now int) {
	if l == nil {
		return
	}
	for i := range l.marks[from:] {
		l.marks[from+i].now += uint32(now)
	}
}

// join takes over what was noted of the run of bodies that begins at a place now.
func (l *Lines) join(run *Lines, now int) {
	if l == nil {
		return
	}
	run.addOffset(0, now)
	l.marks = append(l.marks, run.marks[:min(len(run.marks), maxMarks-len(l.marks))]...)
	l.bodies = append(l.bodies, run.bodies...)
}

// placeholders are custom sections of DWARF: one compilation unit with all offsets.  Its only line names no file.
func placeholders() []byte {
	const first, last = "\x01\x00\x00\x00", "\xff\xff\xff\x7f"
	sized := func(content string) string {
		n := len(content)
		return string([]byte{byte(n), byte(n >> 8), byte(n >> 16), byte(n >> 24)}) + content
	}
	abbreviations := "\x01\x11\x00" + "\x10\x17" + "\x11\x01" + "\x12\x01" + "\x00\x00" + "\x00"
	// DWARF 4: abbreviations at 0, addresses of 4 bytes; the unit's table at 0, and its first and last address.
	info := sized("\x04\x00" + "\x00\x00\x00\x00" + "\x04" + "\x01" + "\x00\x00\x00\x00" + first + last)
	header := "\x01\x01\x01\x00\x01\x0a" + "\x00\x01\x01\x01\x01\x00\x00\x00\x01" + "\x00" + lineMark +
		"\x00\x00\x00\x00" + "\x00"
	program := "\x00\x05\x02" + first + "\x01" + "\x00\x05\x02" + last + "\x00\x01\x01"
	line := sized("\x04\x00" + sized(header) + program)
	var sections []byte
	for _, each := range [][2]string{{".debug_abbrev", abbreviations}, {".debug_info", info}, {".debug_line", line}} {
		content := append(appendName(nil, each[0]), each[1]...)
		sections = append(appendUnsigned(append(sections, sectionCustom), uint64(len(content))), content...)
	}
	return sections
}

// lineMark is in the place where wazero shows the source of a frame: "0x2c: code:1".
const lineMark = "code"

// FrameOffset reads the offset of a frame off the line that wazero shows beneath it.
func FrameOffset(line string) (offset uint64, ok bool) {
	var file string
	n, _ := fmt.Sscanf(line, "0x%x: %s", &offset, &file)
	return offset, n == 2 && strings.HasPrefix(file, lineMark+":")
}
