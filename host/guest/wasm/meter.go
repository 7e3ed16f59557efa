// Package wasm reads WebAssembly modules as far as the host must know them before the runtime does: what a
// module imports and exports, and where its loops are.  It adds a check to each loop and each function, so
// that a guest that spins can be stopped and does not stop the Go process meanwhile (meter.go).
package wasm

import (
	"errors"
	"fmt"
	"slices"
)

// StartExport is the export by which a metered module's start function is called: a module's start
// section runs while the module is instantiated, when nothing could end it yet.
const StartExport = "rdmarun:start"

// StopGlobal is the exported global of a metered module that ends it: once the host sets it to
// anything but 0, the guest traps (unreachable) within Period steps.
const StopGlobal = "rdmarun:stop"

// Period is the number of steps between two exits of a metered module into the host.  A step is an
// iteration of a loop or a call of a function that calls others, so it takes a nanosecond or a few:
// an exit each 0.1 ms or so, which costs 0.1 %.
const Period = 1 << 16

// Meter rewrites a module so that it can be interrupted, however it spins.
//
// wazero's compiled code is not preemptible: a guest that spins keeps its thread from Go's scheduler
// and the whole process from its next garbage collection, and no Go timer is left to end it once as
// many guests spin as there are processors.  So the guest counts its own steps.  At the head of each
// loop, and on entry to each function that calls another one (recursion needs no loop), it does
//
//	fuel = fuel - 1; if fuel == 0 { call tick }
//
// where tick, a function added to the module, is
//
//	fuel = Period; memory.grow 0; if stop { unreachable }
//
// memory.grow leaves compiled code for Go, where the scheduler can preempt; and stop is a global that
// the host sets (StopGlobal).  The counter is a global too: it takes no address from the guest, needs
// no thread to set a flag, and no index of the module moves.  An instruction that fills or copies is a step
// for each 256 of its bytes or elements, paid for before it.
//
// The tables of the result grow as far as the host allows (Bound).  DWARF sections are left out, because the offsets in
// them are wrong afterwards; Lines has what they said of source lines.
func Meter(module []byte) (Rewritten, error) { return rewrite(module, true) }

// Rewritten is a module that was rewritten.
type Rewritten struct {
	Module []byte
	Lines  *Lines // nil when the module has no line table
}

func rewrite(module []byte, metered bool) (Rewritten, error) {
	sections, err := split(module)
	if err != nil {
		return Rewritten{}, err
	}
	m, err := newRewriting(sections, metered)
	if err != nil {
		return Rewritten{}, err
	}
	for _, step := range []func() error{m.addMemory, m.addTypes, m.addFunctions, m.addGlobals, m.addExports, m.rewriteCode} {
		if err := step(); err != nil {
			return Rewritten{}, err
		}
	}
	if m.lines != nil {
		m.sections = append(m.sections, placeholders()...)
	}
	return Rewritten{join(m.sections), m.lines}, nil
}

// rewriting is the state of rewriting a module.
type rewriting struct {
	sections []section
	metered  bool
	memories uint32
	tables   []table
	added    uint32 // index of the first global that is added: room, grown, fuel, stop
	function uint32 // index of the first function that is added: one that grows for each table, tick, pay
	types    uint32 // index of the first type that is added
	start    uint32 // index of the function of the start section, if there is one
	hasStart bool
	check    []byte // the instructions put at each loop and function
	lines    *Lines // nil when the module has no line table
}

func (m *rewriting) room() uint32  { return m.added }
func (m *rewriting) grown() uint32 { return m.added + 1 }
func (m *rewriting) fuel() uint32  { return m.added + 2 }
func (m *rewriting) stop() uint32  { return m.added + 3 }
func (m *rewriting) tick() uint32  { return m.function + uint32(len(m.tables)) }
func (m *rewriting) pay() uint32   { return m.tick() + 1 }

// The types that are added, in their order.
const (
	typeTick = iota // () -> ()
	typePay         // (i32) -> i32
	typeGrowFuncref
	typeGrowExternref
)

var addedTypes = []byte{
	typeFunction, 0, 0,
	typeFunction, 1, typeI32, 1, typeI32,
	typeFunction, 2, typeFuncref, typeI32, 1, typeI32,
	typeFunction, 2, typeExternref, typeI32, 1, typeI32,
}

func newRewriting(sections []section, metered bool) (*rewriting, error) {
	m := &rewriting{metered: metered, lines: linesOf(sections)}
	for _, one := range sections {
		count := (&reader{data: one.content}).index()
		switch {
		case one.id == sectionCustom && isDebug(one.name):
			continue
		case one.id == sectionImport:
			imports, err := parseImports(one.content)
			if err != nil {
				return nil, err
			}
			for _, each := range imports {
				switch each.Kind {
				case KindFunction:
					m.function++
				case KindGlobal:
					m.added++
				case KindMemory:
					m.memories++
				case KindTable:
					return nil, fmt.Errorf("%w: it imports table %s.%s", ErrFormat, each.Module, each.Name)
				}
			}
		case one.id == sectionFunction:
			m.function += count
		case one.id == sectionGlobal:
			m.added += count
		case one.id == sectionMemory:
			m.memories += count
		case one.id == sectionTable:
			tables, err := parseTables(one.content)
			if err != nil {
				return nil, err
			}
			m.tables = tables
		case one.id == sectionStart:
			m.start, m.hasStart = count, true // which is the function's index
			continue
		}
		m.sections = append(m.sections, one)
	}
	if metered {
		m.check = m.checkInstructions()
	}
	return m, nil
}

func isDebug(name string) bool { return len(name) > 7 && name[:7] == ".debug_" }

// code is a run of instructions that is being written.
type code []byte

func (c code) op(opcodes ...byte) code { return append(c, opcodes...) }

// with appends an instruction that has an index, or a number below 64.
func (c code) with(opcode byte, index uint32) code {
	return appendUnsigned(append(c, opcode), uint64(index))
}

func (m *rewriting) checkInstructions() []byte {
	return code(nil).with(opGlobalGet, m.fuel()).with(opI32Const, 1).op(opI32Sub).with(opGlobalSet, m.fuel()).
		with(opGlobalGet, m.fuel()).op(opI32Eqz, opIf, blockTypeEmpty).with(opCall, m.tick()).op(opEnd)
}

// tickBody is the body of tick.
func (m *rewriting) tickBody() code {
	return code(appendPeriod([]byte{opI32Const})).with(opGlobalSet, m.fuel()).
		op(opI32Const, 0, opMemoryGrow, 0, opDrop).
		with(opGlobalGet, m.stop()).op(opIf, blockTypeEmpty, opUnreachable, opEnd, opEnd)
}

// payBody takes the steps of an instruction on so many bytes, and returns that number:
//
//	if n >> 8 < fuel { fuel = fuel - n >> 8 } else { call tick }
func (m *rewriting) payBody() code {
	steps := code(nil).with(opLocalGet, 0).with(opI32Const, 8).op(opI32ShrU)
	return append(code(nil), steps...).with(opGlobalGet, m.fuel()).op(opI32LtU, opIf, blockTypeEmpty).
		with(opGlobalGet, m.fuel()).op(steps...).op(opI32Sub).with(opGlobalSet, m.fuel()).
		op(opElse).with(opCall, m.tick()).op(opEnd).with(opLocalGet, 0).op(opEnd)
}

// appendPeriod appends Period as a signed LEB128: the top bit of its last group has to be clear.
func appendPeriod(out []byte) []byte {
	value := uint64(Period)
	for value >= 0x40 {
		out = append(out, byte(value)|0x80)
		value >>= 7
	}
	return append(out, byte(value))
}

// addMemory gives a module that has no memory one without pages, which tick grows by none.
func (m *rewriting) addMemory() error {
	if !m.metered || m.memories > 0 {
		return nil
	}
	return m.extend(sectionMemory, func(uint32) []byte { return []byte{1, 0, 0} }, 1)
}

func (m *rewriting) addTypes() error {
	return m.extend(sectionType, func(count uint32) []byte {
		m.types = count
		return addedTypes
	}, 4)
}

func (m *rewriting) addFunctions() error {
	var types []byte
	for _, each := range m.tables {
		types = appendUnsigned(types, uint64(m.types+each.growType()))
	}
	added := uint32(len(m.tables))
	if m.metered {
		types = appendUnsigned(types, uint64(m.types+typeTick))
		types = appendUnsigned(types, uint64(m.types+typePay))
		added += 2
	}
	return m.extend(sectionFunction, func(uint32) []byte { return types }, added)
}

// bodies are those of the added functions, as the code section has them.
func (m *rewriting) bodies() []byte {
	var out []byte
	add := func(locals []byte, body code) {
		out = appendUnsigned(out, uint64(len(locals)+len(body)))
		out = append(append(out, locals...), body...)
	}
	none := []byte{0}
	for index := range m.tables {
		add([]byte{1, 1, typeI32}, m.growBody(uint32(index)))
	}
	if m.metered {
		add(none, m.tickBody())
		add(none, m.payBody())
	}
	return out
}

func (m *rewriting) addGlobals() error {
	const mutable = 1
	zero := []byte{typeI32, mutable, opI32Const, 0, opEnd}
	added, entries := uint32(2), append(append([]byte(nil), zero...), zero...)
	if m.metered {
		added = 4
		entries = append(appendPeriod(append(entries, typeI32, mutable, opI32Const)), opEnd)
		entries = append(entries, zero...)
	}
	return m.extend(sectionGlobal, func(uint32) []byte { return entries }, added)
}

func (m *rewriting) addExports() error {
	entries := appendExport(nil, RoomGlobal, KindGlobal, m.room())
	entries = appendExport(entries, GrownGlobal, KindGlobal, m.grown())
	added := uint32(2)
	if m.metered {
		entries = appendExport(entries, StopGlobal, KindGlobal, m.stop())
		added++
	}
	if m.hasStart {
		added++
		entries = appendExport(entries, StartExport, KindFunction, m.start)
	}
	return m.extend(sectionExport, func(uint32) []byte { return entries }, added)
}

func appendExport(out []byte, name string, kind Kind, index uint32) []byte {
	return appendUnsigned(append(appendName(out, name), byte(kind)), uint64(index))
}

// extend appends entries to a section that is a vector, and makes the section where there is none.
func (m *rewriting) extend(id byte, entries func(count uint32) []byte, added uint32) error {
	at := find(m.sections, id)
	if at == nil {
		at = m.insert(id)
	}
	r := &reader{data: at.content}
	count := r.index()
	if r.err != nil {
		return fmt.Errorf("%w: section %d: %w", ErrFormat, id, r.err)
	}
	content := appendUnsigned(nil, uint64(count+added))
	content = append(content, at.content[r.pos:]...)
	at.content = append(content, entries(count)...)
	return nil
}

// insert puts an empty vector section where the order of sections wants it.
func (m *rewriting) insert(id byte) *section {
	at := 0
	for i, one := range m.sections {
		if one.id != sectionCustom && sectionRank(one.id) < sectionRank(id) {
			at = i + 1
		}
	}
	m.sections = append(m.sections, section{})
	copy(m.sections[at+1:], m.sections[at:])
	m.sections[at] = section{id: id, content: []byte{0}}
	return &m.sections[at]
}

// rewriteCode copies the code section with the checks put into each body, and adds the functions'.
func (m *rewriting) rewriteCode() error {
	code := find(m.sections, sectionCode)
	if code == nil {
		code = m.insert(sectionCode)
	}
	r := &reader{data: code.content}
	count := r.index()
	out := make([]byte, 0, len(code.content)+len(code.content)/4)
	added := uint32(len(m.tables))
	if m.metered {
		added += 2
	}
	out = appendUnsigned(out, uint64(count+added))
	var body []byte
	for i := uint32(0); i < count && r.err == nil; i++ {
		size := r.unsigned()
		was, marks := r.pos, 0
		if m.lines != nil {
			m.lines.bodies = append(m.lines.bodies, uint32(was))
			marks = len(m.lines.marks)
		}
		var err error
		if body, err = m.rewriteBody(body[:0], r.bytes(size)); err != nil {
			return fmt.Errorf("function body %d: %w", i, err)
		}
		out = appendUnsigned(out, uint64(len(body)))
		if m.lines != nil {
			m.lines.place(marks, len(out), was)
		}
		out = append(out, body...)
	}
	if r.err == nil && r.more() {
		r.fail(errors.New("the code section is longer than its bodies"))
	}
	if r.err != nil {
		return fmt.Errorf("%w: %w", ErrFormat, r.err)
	}
	code.content = append(out, m.bodies()...)
	return nil
}

// rewriteBody returns one function's body with its checks, in the space of out, which is empty.
func (m *rewriting) rewriteBody(out, body []byte) ([]byte, error) {
	r := &reader{data: body}
	r.vector(func() { r.index(); r.leb() }) // locals: so many of that type
	entry := r.pos
	out = append(out, body[:entry]...)
	copied, calls, marks := entry, false, m.lines.count()
	m.lines.note(entry, entry)
	// insert puts instructions between what was copied and what follows, from next on.
	insert := func(upTo, next int, instructions []byte) {
		out = append(out, body[copied:upTo]...)
		m.lines.note(len(out), upTo)
		out = append(out, instructions...)
		m.lines.note(len(out), next)
		copied = next
	}
	for r.more() {
		at := r.pos
		switch r.instruction() {
		case opLoop:
			insert(r.pos, r.pos, m.check)
		case opGlobalGet, opGlobalSet:
			// The module is validated with the added globals, but its own code must not use them.
			if index := (&reader{data: body, pos: at + 1}).index(); index >= m.added {
				return nil, fmt.Errorf("%w: global %d does not exist", ErrFormat, index)
			}
		case opCall, opCallIndirect, opReturnCall, opReturnCallIndirect:
			calls = true
		case opBulk:
			operation := &reader{data: body, pos: at + 1}
			switch operation.index() {
			case bulkMemoryInit, bulkMemoryCopy, bulkMemoryFill, bulkTableInit, bulkTableCopy, bulkTableFill:
				if m.metered {
					insert(at, at, code(nil).with(opCall, m.pay()))
				}
			case bulkTableGrow:
				index := operation.index()
				if index >= uint32(len(m.tables)) {
					return nil, fmt.Errorf("%w: table %d does not exist", ErrFormat, index)
				}
				insert(at, r.pos, code(nil).with(opCall, m.function+index))
			}
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	out = append(out, body[copied:]...)
	// A loop that comes first (Go's compiler begins most functions so) checks for the entry too.
	if m.metered && calls && body[entry] != opLoop {
		out = slices.Insert(out, entry, m.check...)
		m.lines.shift(marks, entry, len(m.check))
	}
	return out, nil
}

// RoomGlobal and GrownGlobal are exported globals of a rewritten module: by how many elements its tables, all of them
// together, may still grow, which the host sets; and by how many they have grown.
const (
	RoomGlobal  = "rdmarun:room"
	GrownGlobal = "rdmarun:grown"
)

// ElementSize is what an element of a table takes.  wazero keeps a table in a slice that append grows: some
// of it is spare, and the last one is garbage for a while.
const ElementSize = 32

// Bound rewrites a module so that its tables grow only as far as the host allows.
//
// wazero asks nobody before it grows a table, and a table without a maximum may have 2^32 elements of 8 bytes.  So
// each table.grow becomes a call of a function that is added:
//
//	if n > room { return -1 }
//	if table.grow succeeds { room = room - n; grown = grown + n }
func Bound(module []byte) (Rewritten, error) { return rewrite(module, false) }

// table is one table of a module.
type table struct {
	reference byte // the type of its elements
	minimum   uint64
}

// growType is which of the added types the function has that grows the table.
func (t table) growType() uint32 {
	if t.reference == typeExternref {
		return typeGrowExternref
	}
	return typeGrowFuncref
}

func parseTables(content []byte) ([]table, error) {
	return parse("table", content, func(r *reader) table {
		one := table{reference: r.byte()}
		withInitial := one.reference == 0x40
		if withInitial {
			r.byte()
			one.reference = r.byte()
		}
		if feature := missingType(one.reference); feature != nil && r.err == nil {
			r.fail(unsupported(feature))
		}
		if one.reference != typeFuncref && one.reference != typeExternref && r.err == nil {
			r.fail(fmt.Errorf("tables of type %#x are not known", one.reference))
		}
		one.minimum, _, _ = r.limits()
		if withInitial {
			r.expression()
		}
		return one
	})
}

// expression skips a constant expression.
func (r *reader) expression() {
	for r.more() {
		switch r.instruction() {
		case opEnd:
			return
		case opI32Add, opI32Sub, opI32Mul, opI64Add, opI64Sub, opI64Mul:
			r.uses |= extendedConst
		}
	}
}

func (m *rewriting) growBody(index uint32) code {
	minusOne := []byte{opI32Const, 0x7f}
	return code(nil).with(opLocalGet, 1).with(opGlobalGet, m.room()).op(opI32GtU, opIf, blockTypeEmpty).
		op(minusOne...).op(opReturn, opEnd).
		with(opLocalGet, 0).with(opLocalGet, 1).op(opBulk).with(bulkTableGrow, index).with(opLocalTee, 2).
		op(minusOne...).op(opI32Ne, opIf, blockTypeEmpty).
		with(opGlobalGet, m.room()).with(opLocalGet, 1).op(opI32Sub).with(opGlobalSet, m.room()).
		with(opGlobalGet, m.grown()).with(opLocalGet, 1).op(opI32Add).with(opGlobalSet, m.grown()).
		op(opEnd).with(opLocalGet, 2).op(opEnd)
}
