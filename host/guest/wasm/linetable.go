package wasm

import (
	"bytes"
	"fmt"
	"strconv"
)

// lineTables are DWARF's tables of source lines, of all compilation units, and their strings (DWARF 5, section 6.2;
// versions 2 to 5).
type lineTables struct{ program, lineStrings, strings []byte }

// maxRows is how many rows of line tables are looked at, in all.
const maxRows = 1 << 22

// find looks up addresses. A sequence of rows that does not begin where a function does is of code that the linker has
// dropped. Or a tool changed the module after its table was made.
func (t *lineTables) find(addresses []uint64, begins func(address uint64) bool) []string {
	found, done := make([]string, len(addresses)), make([]bool, len(addresses))
	r := &reader{data: t.program}
	for rows := 0; r.more() && rows < maxRows; {
		size := r.fixed(4)
		if size >= 0xfffffff0 {
			break // 64 bits, which nothing makes for wasm32
		}
		if unit := newLineUnit(t, r.bytes(size)); unit != nil {
			unit.rows, unit.begins = &rows, begins
			unit.run(addresses, func(i int, row lineRow) {
				if !done[i] {
					found[i], done[i] = unit.location(row), true
				}
			})
		}
	}
	return found
}

// lineUnit is the table of one compilation unit while it is run.
type lineUnit struct {
	tables  *lineTables
	content []byte
	program *reader
	version uint64
	names   int // where the folders and files begin

	minimum, lineRange, opcodeBase uint64
	lineBase                       int64
	lengths                        []byte // how many arguments each standard opcode has

	begins func(address uint64) bool
	rows   *int
}

// newLineUnit reads the header; nil when it is none.
func newLineUnit(tables *lineTables, content []byte) *lineUnit {
	r := &reader{data: content}
	u := &lineUnit{tables: tables, content: content, version: r.fixed(2)}
	if u.version < 2 || u.version > 5 {
		return nil
	}
	if u.version >= 5 {
		r.skip(2) // sizes of addresses and of segment selectors
	}
	length := r.fixed(4)
	end := uint64(r.pos) + length
	u.minimum = uint64(r.byte())
	if u.version >= 4 {
		r.byte() // operations per instruction: one, where there are no bundles
	}
	r.byte()
	u.lineBase, u.lineRange = int64(int8(r.byte())), uint64(r.byte())
	u.opcodeBase = uint64(r.byte())
	if u.opcodeBase == 0 || u.lineRange == 0 {
		return nil
	}
	u.lengths = r.bytes(u.opcodeBase - 1)
	u.names = r.pos
	if r.err != nil || end > uint64(len(content)) {
		return nil
	}
	u.program = &reader{data: content, pos: int(end)}
	return u
}

// lineRow is the state of a table's machine.
type lineRow struct {
	address, file, column uint64
	line                  int64
}

// Opcodes of line tables.
const (
	lineExtended = iota
	lineCopy
	lineAdvancePC
	lineAdvanceLine
	lineSetFile
	lineSetColumn
	lineNegate
	lineBasicBlock
	lineConstAddPC
	lineFixedAdvancePC

	lineEndSequence = 1
	lineSetAddress  = 2
)

// run goes through the rows.  Those of line 0 belong to no line: the one before them stands for them.
func (u *lineUnit) run(addresses []uint64, found func(i int, row lineRow)) {
	fresh := lineRow{file: 1, line: 1}
	row, last, shown := fresh, fresh, lineRow{}
	started, valid := false, false
	emit := func(ends bool) {
		*u.rows++
		if !started {
			started, valid = true, u.begins(row.address)
		} else if valid && row.address > last.address {
			for i, address := range addresses {
				if last.address <= address && address < row.address && shown.line > 0 {
					found(i, shown)
				}
			}
		}
		if last = row; row.line != 0 {
			shown = row
		}
		if ends {
			row, last, shown, started = fresh, fresh, lineRow{}, false
		}
	}
	r := u.program
	for r.more() && *u.rows < maxRows {
		opcode := uint64(r.byte())
		switch {
		case opcode >= u.opcodeBase:
			row.address += u.minimum * ((opcode - u.opcodeBase) / u.lineRange)
			row.line += u.lineBase + int64((opcode-u.opcodeBase)%u.lineRange)
			emit(false)
		case opcode == lineExtended:
			content := &reader{data: r.bytes(r.unsigned())}
			switch content.byte() {
			case lineEndSequence:
				emit(true)
			case lineSetAddress:
				row.address = content.fixed(min(len(content.data)-content.pos, 8))
			}
		case opcode == lineCopy:
			emit(false)
		case opcode == lineAdvancePC:
			row.address += u.minimum * r.unsigned()
		case opcode == lineAdvanceLine:
			row.line += r.signed()
		case opcode == lineSetFile:
			row.file = r.unsigned()
		case opcode == lineSetColumn:
			row.column = r.unsigned()
		case opcode == lineConstAddPC:
			row.address += u.minimum * ((255 - u.opcodeBase) / u.lineRange)
		case opcode == lineFixedAdvancePC:
			row.address += r.fixed(2)
		default:
			for range u.lengths[opcode-1] {
				r.leb()
			}
		}
	}
}

// location is a row as people write it.
func (u *lineUnit) location(row lineRow) string {
	file := u.file(row.file)
	if file == "" {
		return ""
	}
	text := file + ":" + strconv.FormatInt(row.line, 10)
	if row.column != 0 {
		text += ":" + strconv.FormatUint(row.column, 10)
	}
	return text
}

// maxFileName is where the name of a source file is cut, in bytes.
const maxFileName = 256

// maxText is how much of a text is read, in bytes.
const maxText = 4 * maxFileName

// file is the name of a file by its number, with its folder where that is not the one it was compiled in.
func (u *lineUnit) file(number uint64) string {
	r := &reader{data: u.content, pos: u.names}
	var name, folder string
	if u.version >= 5 {
		folders := *r
		r.entries(u.tables, 1<<32, nil)
		r.entries(u.tables, number, func(text string, index uint64) {
			name = text
			if index > 0 {
				folders.entries(u.tables, index, func(text string, _ uint64) { folder = text })
			}
		})
	} else {
		folders := *r
		for r.more() && r.text() != "" {
		}
		for at := uint64(1); r.more(); at++ {
			text, index := r.text(), r.unsigned()
			if text == "" {
				break
			}
			r.leb()
			r.leb()
			if at != number {
				continue
			}
			name = text
			for at := uint64(1); at <= index && folders.more(); at++ {
				if folder = folders.text(); folder == "" {
					break
				}
			}
		}
	}
	if name == "" {
		return ""
	}
	if folder != "" && name[0] != '/' {
		name = folder + "/" + name
	}
	if len(name) > maxFileName {
		name = "..." + name[len(name)-maxFileName:]
	}
	return name
}

// Contents and forms of entries of version 5.
const (
	entryPath   = 1
	entryFolder = 2

	formData2      = 0x05
	formData4      = 0x06
	formData8      = 0x07
	formString     = 0x08
	formData1      = 0x0b
	formStrp       = 0x0e
	formUdata      = 0x0f
	formData16     = 0x1e
	formLineStrp   = 0x1f
	maxEntryFields = 16
)

// entries reads a list of folders or files of version 5, and gives the one with that number to take.
func (r *reader) entries(tables *lineTables, number uint64, take func(text string, folder uint64)) {
	count := int(r.byte())
	if count > maxEntryFields {
		r.fail(fmt.Errorf("an entry of a line table has %d fields", count))
	}
	var fields [maxEntryFields][2]uint64
	for i := range min(count, maxEntryFields) {
		fields[i] = [2]uint64{r.unsigned(), r.unsigned()}
	}
	entries := r.unsigned()
	if count == 0 {
		return
	}
	for at := uint64(0); at < entries && r.more(); at++ {
		var text string
		var folder uint64
		for _, field := range fields[:count] {
			value, word := r.form(tables, field[1], at == number)
			switch field[0] {
			case entryPath:
				text = value
			case entryFolder:
				folder = word
			}
		}
		if at == number && take != nil && r.err == nil {
			take(text, folder)
		}
	}
}

// form reads a field.  A text elsewhere is looked at only if it is wanted: entries may all share a long one.
func (r *reader) form(tables *lineTables, form uint64, wanted bool) (text string, number uint64) {
	indirect := func(from []byte) string {
		at := r.fixed(4)
		if !wanted || at >= uint64(len(from)) {
			return ""
		}
		text, _, _ := bytes.Cut(from[at:min(at+maxText, uint64(len(from)))], []byte{0})
		return string(text)
	}
	switch form {
	case formString:
		return r.text(), 0
	case formStrp:
		return indirect(tables.strings), 0
	case formLineStrp:
		return indirect(tables.lineStrings), 0
	case formUdata:
		return "", r.unsigned()
	case formData1:
		return "", uint64(r.byte())
	case formData2:
		return "", r.fixed(2)
	case formData4:
		return "", r.fixed(4)
	case formData8:
		return "", r.fixed(8)
	case formData16:
		r.skip(16)
	default:
		r.fail(fmt.Errorf("form %#x of a line table is not known", form))
	}
	return "", 0
}

// fixed reads a little-endian number of so many bytes.
func (r *reader) fixed(size int) uint64 {
	var value uint64
	for i, b := range r.bytes(uint64(size)) {
		value |= uint64(b) << (8 * i)
	}
	return value
}

// signed reads a signed LEB128 number of at most 64 bits.
func (r *reader) signed() int64 {
	var value int64
	for shift := 0; shift < 64; shift += 7 {
		b := r.byte()
		value |= int64(b&0x7f) << shift
		if b < 0x80 {
			if shift += 7; shift < 64 && b&0x40 != 0 {
				value |= -1 << shift
			}
			return value
		}
	}
	r.fail(fmt.Errorf("a number is longer than 64 bits"))
	return 0
}

// text reads up to a NUL.
func (r *reader) text() string {
	end := bytes.IndexByte(r.data[min(r.pos, len(r.data)):], 0)
	if end < 0 {
		r.fail(errTruncated)
		return ""
	}
	text := r.bytes(uint64(end))
	r.skip(1)
	return string(text[:min(len(text), maxText)])
}
