package wasm

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Lines finds where in its source an instruction of a rewritten module is from: by the line tables of the module as it
// was (DWARF's .debug_line), and by how far the rewriting has moved each instruction.
//
// wazero says where in the code a frame of a stack is only together with a source line that it finds in DWARF itself.
// So the rewritten module gets DWARF that names no source at all (placeholders), and the offset is looked up here:
// within bounds that a hostile table cannot exceed, and in tables of any version.
type Lines struct {
	tables lineTables
	marks  []mark
	bodies []uint32 // where the functions of the module as it was begin, ascending
}

// mark maps an offset in the rewritten code to the offset that it had before, up to the next mark.  Inserted code is
// between two marks with the same old offset.  Offsets are in the content of the code section.
type mark struct{ now, was uint32 }

// section takes one of DWARF's.
func (l *Lines) section(name string, content []byte) {
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

// HasLines reports whether the module has a line table.
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

// usable reports whether there is a table of lines.
func (l *Lines) usable() bool { return len(l.tables.program) > 0 }

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
	return l.tables.find(was, func(first uint64) bool {
		_, found := slices.BinarySearch(l.bodies, uint32(min(first, 1<<32-1)))
		return found
	})
}

// note adds a mark for a body that is being rewritten; until the body is placed, now is an offset in it.
func (l *Lines) note(now, was int) {
	if l != nil && len(l.marks) < maxMarks {
		l.marks = append(l.marks, mark{uint32(now), uint32(was)})
	}
}

// maxMarks bounds the marks; lines of the code behind them are not found.  A module has one or two for each
// loop, and one for each instruction whose numbers were written longer than they need be.
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

// placeholders are custom sections of DWARF: one compilation unit with all offsets, whose only line names no file.
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

// lineMark stands where wazero shows the source of a frame: "0x2c: code:1".
const lineMark = "code"

// FrameOffset reads the offset of a frame off the line that wazero shows beneath it.
func FrameOffset(line string) (offset uint64, ok bool) {
	var file string
	n, _ := fmt.Sscanf(line, "0x%x: %s", &offset, &file)
	return offset, n == 2 && strings.HasPrefix(file, lineMark+":")
}
