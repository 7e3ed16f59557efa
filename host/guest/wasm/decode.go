// Package wasm decides what a module is before the runtime sees it. A strict decoder and validator (decode.go,
// validate.go) reads the guest's bytes once. What the runtime compiles is written again from that, with a check in
// each loop and each function (meter.go). So a guest that spins can be stopped, and does not block the Go process
// meanwhile.
package wasm

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

// Module is a decoded module: every section but the bodies of functions, which Validate, Meter and Bound decode.
//
// What a runtime gets is written again from it (Meter, Bound). So this package and the runtime cannot read a module
// differently: the runtime does not read the bytes of the file.
type Module struct {
	Facts Facts

	file      []byte
	types     []Signature
	functions []uint32 // the types of all functions, imported ones first; likewise the next ones
	tables    []table
	globals   []globalType
	memories  int
	elements  []byte // the type of each segment
	dataCount int    // of its section, -1 without one
	start     uint32 // index of the function of the start section
	hasStart  bool
	declared  []bool // the functions that ref.func may name: those named outside of bodies (3.4.10)

	importedFunctions, importedTables uint32

	sections [sectionDataCount + 1]vector // what they hold, encoded anew
	bodies   []body
	code     int // where the content of the code section begins
	names    []byte
	lines    *Lines // nil when the module has neither a line table nor a source map

	constants *validator // of constant expressions: a Go program has one in each of its thousands of data segments
}

// vector is the content of a section.
type vector struct {
	count uint32
	items []byte
}

// body is the code of a function in the file: from where its local variables are declared.
type body struct{ begin, end int }

// Section ids (WebAssembly Core Specification 2.0, section 5.5.2).
const (
	sectionCustom    = 0
	sectionType      = 1
	sectionImport    = 2
	sectionFunction  = 3
	sectionTable     = 4
	sectionMemory    = 5
	sectionGlobal    = 6
	sectionExport    = 7
	sectionStart     = 8
	sectionElement   = 9
	sectionCode      = 10
	sectionData      = 11
	sectionDataCount = 12
	sectionTag       = 13
)

// sectionOrder is the order of sections in a module; their ids are not in it.
var sectionOrder = []byte{sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal,
	sectionExport,
	sectionStart, sectionElement, sectionDataCount, sectionCode, sectionData}

var sectionNames = [...]string{"custom section", "type section", "import section", "function section", "table section",
	"memory section", "global section", "export section", "start section", "element section", "code section",
	"data section",
	"data count section"}

// ErrFormat is the error for bytes that are no WebAssembly module, or no valid one.
var ErrFormat = errors.New("not a WebAssembly module")

// invalidError is ErrFormat for a file that begins as a module does.
type invalidError struct{ err error }

func (e *invalidError) Error() string   { return "not a valid WebAssembly module: " + e.err.Error() }
func (e *invalidError) Unwrap() []error { return []error{ErrFormat, e.err} }

var header = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// Decode reads a module and rejects one that violates the specification or exceeds the limits for guests. The
// specification is the WebAssembly Core Specification 2.0, chapters 3 and 5, with the features of Features. The result
// shares the file's bytes.
//
// Errors: *UnsupportedError, or ErrFormat with the place in the file.
func Decode(file []byte) (*Module, error) {
	if len(file) < len(header) || string(file[:4]) != string(header[:4]) {
		return nil, ErrFormat
	}
	if string(file[4:8]) != string(header[4:]) {
		return nil, fmt.Errorf("%w: version %#x, where a core module has 1 (is it a component?)", ErrFormat, file[4:8])
	}
	m := &Module{Facts: Facts{Size: len(file)}, file: file, dataCount: -1}
	r := &reader{data: file, pos: len(header)}
	for rank := -1; r.more(); {
		rank = m.section(r, rank)
	}
	if r.err == nil {
		m.whole(r)
	}
	if r.err != nil {
		return nil, wrapFormat(r.failure())
	}
	m.finish()
	return m, nil
}

// section reads the next section, which has to come after that of a rank, and gives its own rank.
func (m *Module) section(r *reader, rank int) int {
	at := r.pos
	id := r.byte()
	content := r.sub(r.index())
	if r.err != nil {
		return rank
	}
	if id == sectionCustom {
		m.custom(content)
		r.join(content, sectionNames[id])
		return rank
	}
	this := strings.IndexByte(string(sectionOrder), id)
	switch {
	case id == sectionTag:
		r.failAt(at, unsupported(exceptions))
	case this < 0:
		r.failAt(at, fmt.Errorf("section %d is not known", id))
	case this == rank:
		r.failAt(at, fmt.Errorf("there are two %ss", sectionNames[id]))
	case this < rank:
		r.failAt(at, fmt.Errorf("the %s is out of order", sectionNames[id]))
	default:
		m.content(id, content)
		r.join(content, sectionNames[id])
	}
	return this
}

func (m *Module) content(id byte, r *reader) {
	out := &m.sections[id]
	if id != sectionCode {
		out.items = make([]byte, 0, len(r.data)-r.pos) // it does not become longer
	}
	switch id {
	case sectionType:
		items(r, out, maxItems, (*reader).signature, appendSignature, &m.types)
	case sectionImport:
		m.items(r, out, maxItems, m.imports)
	case sectionFunction:
		m.items(r, out, maxItems, m.function)
	case sectionTable:
		m.items(r, out, maxTables, func(r *reader, out []byte) []byte { return m.table(r.table(), out) })
	case sectionMemory:
		m.items(r, out, maxItems, func(r *reader, out []byte) []byte { return m.memory(r, out) })
	case sectionGlobal:
		m.items(r, out, maxItems, m.global)
	case sectionExport:
		m.exports(r, out)
	case sectionStart:
		m.start, m.hasStart = r.index(), true
		if at := r.pos; r.err == nil && (m.start >= uint32(len(m.functions)) || m.signature(m.start) != Signature{}) {
			r.failAt(at, fmt.Errorf("the start function %d is none, or takes or gives values", m.start))
		}
	case sectionElement:
		m.elementSegments(r, out)
	case sectionDataCount:
		if count := r.index(); count > maxItems {
			r.fail(fmt.Errorf("it has %d items; the limit is %d", count, maxItems))
		} else {
			m.dataCount = int(count)
		}
	case sectionCode:
		m.codeSection(r)
	case sectionData:
		m.items(r, out, maxItems, m.data)
	}
}

// items reads a section's items by a function that writes them anew.
func (m *Module) items(r *reader, out *vector, most uint32, item func(*reader, []byte) []byte) {
	count := r.items(most)
	for i := uint32(0); i < count && r.err == nil; i++ {
		out.items = item(r, out.items)
	}
	out.count = count
}

// items reads a section of plain items.
func items[T any](r *reader, out *vector, most uint32, read func(*reader) T, write func([]byte, T) []byte, into *[]T) {
	count := r.items(most)
	for i := uint32(0); i < count && r.err == nil; i++ {
		if one := read(r); r.err == nil {
			*into, out.items = append(*into, one), write(out.items, one)
		}
	}
	out.count = count
}

func (r *reader) items(most uint32) uint32 {
	at := r.pos
	count := r.index()
	if count > most {
		r.failAt(at, fmt.Errorf("it has %d items; the limit is %d", count, most))
	}
	return count
}

func (r *reader) typeIndex(types []Signature) uint32 {
	at := r.pos
	index := r.index()
	if r.err == nil && index >= uint32(len(types)) {
		r.failAt(at, fmt.Errorf("a function has type %d, and there are %d", index, len(types)))
	}
	return index
}

func (m *Module) imports(r *reader, out []byte) []byte {
	one := Import{Module: r.name(), Name: r.name()}
	at := r.pos
	one.Kind = Kind(r.byte())
	out = append(appendName(appendName(out, one.Module), one.Name), byte(one.Kind))
	switch one.Kind {
	case KindFunction:
		index := r.typeIndex(m.types)
		if r.err != nil {
			return out
		}
		one.Signature = m.types[index]
		m.functions = append(m.functions, index)
		m.importedFunctions++
		out = appendUnsigned(out, uint64(index))
	case KindTable:
		m.importedTables++
		out = m.table(r.table(), out)
	case KindMemory:
		l := m.addMemory(r)
		out = l.append(out)
	case KindGlobal:
		one := r.globalType()
		if one.imported = true; r.err == nil {
			m.globals = append(m.globals, one)
			out = one.append(out)
		}
	case KindTag:
		r.failAt(at, unsupported(exceptions))
	default:
		r.failAt(at, fmt.Errorf("import %.100q.%.100q is of unknown kind %#x", one.Module, one.Name, byte(one.Kind)))
	}
	if one.Module == "" { // which wazero refuses, though it is valid
		r.failAt(at, errors.New("an import has an empty module name"))
	}
	if len(m.Facts.Imports) >= maxItems {
		r.failAt(at, fmt.Errorf("a module has more than %d imports", maxItems))
	}
	m.Facts.Imports = append(m.Facts.Imports, one)
	return out
}

func (m *Module) function(r *reader, out []byte) []byte {
	index := r.typeIndex(m.types)
	m.functions = append(m.functions, index)
	m.Facts.InstanceSize += functionSize
	return appendUnsigned(out, uint64(index))
}

func (m *Module) table(one table, out []byte) []byte {
	if one.reference == 0 {
		return out // an error was noted
	}
	if len(m.tables) > 0 || one.reference != letterFunction {
		m.Facts.Features |= referenceTypes
	}
	m.tables = append(m.tables, one)
	m.Facts.InstanceSize += uint64(one.minimum) * elementSize
	return one.append(out)
}

func (m *Module) addMemory(r *reader) limits {
	at := r.pos
	if m.memories++; m.memories > 1 {
		r.failAt(at, unsupported(multiMemory))
		return limits{}
	}
	return r.memory()
}

func (m *Module) memory(r *reader, out []byte) []byte {
	l := m.addMemory(r)
	m.Facts.HasMemory, m.Facts.SharedMemory = true, l.shared
	m.Facts.MinPages, m.Facts.MaxPages = uint64(l.minimum), 1<<16
	if l.bounded {
		m.Facts.MaxPages = uint64(l.maximum)
	}
	return l.append(out)
}

func (m *Module) global(r *reader, out []byte) []byte {
	one := r.globalType()
	if r.err != nil {
		return out
	}
	out = m.constant(r, one.append(out), one.letter)
	m.globals = append(m.globals, one)
	m.Facts.InstanceSize += globalSize
	return out
}

// constant reads a constant expression (section 3.3.10) that gives a value of this type.
func (m *Module) constant(r *reader, out []byte, letter byte) []byte {
	if m.constants == nil {
		m.constants = &validator{m: m, in: new(instruction)}
	}
	v, in := m.constants, m.constants.in
	v.begin(r, Signature{Results: letterText(letter)})
	for r.err == nil && !v.ended() {
		v.at = r.pos
		if r.instruction(in, m.types); r.err != nil {
			break
		}
		switch in.opcode {
		case opEnd, opI32Const, opI64Const, opF32Const, opF64Const, opV128Const, opRefNull:
		case opRefFunc:
			m.declare(r, in.index)
		case opI32Add, opI32Sub, opI32Mul, opI64Add, opI64Sub, opI64Mul:
			v.uses |= extendedConst
		case opGlobalGet:
			if in.index >= uint32(len(m.globals)) || !m.globals[in.index].imported || m.globals[in.index].mutable {
				v.fail(
					"has global %d in a constant expression, where only imported ones that do not change can be",
					in.index,
				)
			}
		default:
			v.fail("is no constant expression")
		}
		if r.err == nil {
			v.check()
			out = in.append(out)
		}
	}
	m.Facts.Features |= v.uses
	return out
}

// declare notes that ref.func may name a function.
func (m *Module) declare(r *reader, index uint32) {
	if m.declared == nil {
		m.declared = make([]bool, len(m.functions))
	}
	if index >= uint32(len(m.functions)) {
		r.fail(fmt.Errorf("function %d is named, and there are %d", index, len(m.functions)))
		return
	}
	m.declared[index] = true
}

func (m *Module) exports(r *reader, out *vector) {
	count := r.items(maxItems)
	names := make(map[string]bool)
	for i := uint32(0); i < count && r.err == nil; i++ {
		at := r.pos
		one := Export{Name: r.name(), Kind: Kind(r.byte()), index: r.index()}
		if r.err != nil {
			return
		}
		known := 0
		switch one.Kind {
		case KindFunction:
			if known = len(m.functions); int64(one.index) < int64(known) {
				one.Signature = m.signature(one.index)
				m.declare(r, one.index)
			}
		case KindTable:
			known = len(m.tables)
		case KindMemory:
			known = m.memories
		case KindGlobal:
			known = len(m.globals)
		default:
			r.failAt(at, fmt.Errorf("export %.100q is of unknown kind %#x", one.Name, byte(one.Kind)))
		}
		switch {
		case int64(one.index) >= int64(known):
			r.failAt(
				at, fmt.Errorf("export %.100q is number %d of its kind, and there are %d", one.Name, one.index, known),
			)
		case names[one.Name]:
			r.failAt(at, fmt.Errorf("there are two exports %.100q", one.Name))
		case strings.HasPrefix(one.Name, reserved):
			r.failAt(at, fmt.Errorf("export %.100q has a name that is kept for the host", one.Name))
		}
		names[one.Name] = true
		m.Facts.Exports = append(m.Facts.Exports, one)
		out.items = appendUnsigned(append(appendName(out.items, one.Name), byte(one.Kind)), uint64(one.index))
	}
	out.count = count
}

// elementSegments reads the element section (section 5.5.12).
func (m *Module) elementSegments(r *reader, out *vector) {
	const passive, indexed, expressions = 1, 2, 4
	all := uint64(0)
	m.items(r, out, maxItems, func(r *reader, out []byte) []byte {
		m.Facts.InstanceSize += segmentSize
		at := r.pos
		kind := r.index()
		if kind > passive|indexed|expressions {
			r.failAt(at, fmt.Errorf("element segments of kind %d are not known", kind))
			return out
		}
		out = appendUnsigned(out, uint64(kind))
		to := uint32(0)
		if kind&passive == 0 {
			if kind&indexed != 0 {
				to = r.index()
				out = appendUnsigned(out, uint64(to))
			}
			if r.err == nil && to >= uint32(len(m.tables)) {
				r.failAt(at, fmt.Errorf("a segment is for table %d, and there are %d", to, len(m.tables)))
			}
			out = m.constant(r, out, 'i')
		}
		letter := byte(letterFunction)
		switch {
		case kind&(passive|indexed) == 0:
		case kind&expressions != 0:
			if letter = r.referenceType(); r.err == nil {
				out = append(out, typeCode(letter))
			}
		default:
			at := r.pos
			if form := r.byte(); form != 0 {
				r.failAt(at, fmt.Errorf("elements of kind %#x are not known", form))
			}
			out = append(out, 0)
		}
		if kind&passive == 0 && r.err == nil && m.tables[to].reference != letter {
			r.failAt(
				at,
				fmt.Errorf("a segment of %s is for a table of %s", typeName(letter), typeName(m.tables[to].reference)),
			)
		}
		m.elements = append(m.elements, letter)
		entries := r.index()
		if all += uint64(entries); all > maxElements {
			r.fail(fmt.Errorf("its tables are filled with more than %d elements", maxElements))
		}
		out = appendUnsigned(out, uint64(entries))
		for i := uint32(0); i < entries && r.err == nil; i++ {
			if kind&expressions != 0 {
				out = m.constant(r, out, letter)
				continue
			}
			index := r.index()
			m.declare(r, index)
			out = appendUnsigned(out, uint64(index))
		}
		return out
	})
	m.Facts.InstanceSize += min(all, maxElements) * elementSize
}

func (m *Module) data(r *reader, out []byte) []byte {
	const passive, indexed = 1, 2
	m.Facts.InstanceSize += segmentSize
	at := r.pos
	kind := r.index()
	if kind > indexed {
		r.failAt(at, fmt.Errorf("data segments of kind %d are not known", kind))
		return out
	}
	out = appendUnsigned(out, uint64(kind&passive)) // there is only memory 0
	if kind == indexed {
		if at := r.pos; r.index() != 0 {
			r.failAt(at, unsupported(multiMemory))
		}
	}
	if kind != passive {
		if m.memories == 0 {
			r.failAt(at, errors.New("a data segment is for a memory, and there is none"))
		}
		out = m.constant(r, out, 'i')
	}
	content := r.bytes(uint64(r.index()))
	return append(appendUnsigned(out, uint64(len(content))), content...)
}

// codeSection finds the bodies; they are decoded when all that they may refer to is known.
func (m *Module) codeSection(r *reader) {
	m.code = r.pos
	at := r.pos
	count := r.index()
	if defined := uint32(len(m.functions)) - m.importedFunctions; r.err == nil && count != defined {
		r.failAt(at, fmt.Errorf("the code section has %d bodies for %d functions", count, defined))
	}
	for i := uint32(0); i < count && r.err == nil; i++ {
		at := r.pos
		size := r.index()
		if size > maxBody {
			r.failAt(at, fmt.Errorf("a function has %d bytes; the limit is %d", size, maxBody))
		}
		begin := r.pos
		r.skip(uint64(size))
		m.bodies = append(m.bodies, body{begin, r.pos})
	}
}

// whole checks that sections agree with each other.
func (m *Module) whole(r *reader) {
	if defined := uint32(len(m.functions)) - m.importedFunctions; uint32(len(m.bodies)) != defined {
		r.fail(fmt.Errorf("the code section has %d bodies for %d functions", len(m.bodies), defined))
	}
	if segments := m.sections[sectionData].count; m.dataCount >= 0 && uint32(m.dataCount) != segments {
		r.fail(fmt.Errorf("the data count section says %d, and there are %d data segments", m.dataCount, segments))
	}
	if len(m.functions) > math.MaxInt32 || len(m.functions) > 2*maxItems {
		r.fail(fmt.Errorf("a module has more than %d functions", 2*maxItems))
	}
}

// finish is for what follows from the whole of the sections.
func (m *Module) finish() {
	if m.declared == nil {
		m.declared = make([]bool, len(m.functions))
	}
	for _, each := range m.types {
		if len(each.Results) > 1 {
			m.Facts.Features |= multiValue
		}
		m.Facts.Features |= featuresOf(each)
	}
	for _, each := range m.globals {
		m.Facts.Features |= featuresOf(Signature{Results: letterText(each.letter)})
	}
	if m.lines != nil && !m.lines.usable() {
		m.lines = nil
	}
}

// signature is the type of a function.
func (m *Module) signature(function uint32) Signature { return m.types[m.functions[function]] }

// wrapFormat marks an error as that of an invalid module, unless it is of a feature that guests cannot use.
func wrapFormat(err error) error {
	if unsupported := (*UnsupportedError)(nil); errors.As(err, &unsupported) {
		return err
	}
	return &invalidError{err}
}
