package wasm

import (
	"context"
	"errors"
	"slices"
)

// StartExport is the export by which a metered module's start function is called. A module's start section runs during
// instantiation, when nothing could end it yet.
const StartExport = "rdmarun:start"

// StopGlobal is the exported global of a metered module that ends it. Once the host sets it to anything but 0, the
// guest traps (unreachable) within Period steps.
const StopGlobal = "rdmarun:stop"

// period is the number of steps between two exits of a metered module into the host. A step is an iteration of a loop
// or a call of a function that calls others, so it takes a nanosecond or a few. There is an exit each 0.1 ms or so,
// which costs 0.1 %.
const period = 1 << 16

// Meter rewrites a module so that it can be interrupted, however it spins.
//
// wazero's compiled code is not preemptible. A guest that spins keeps its thread from Go's scheduler and the whole
// process from its next garbage collection. Once as many guests spin as there are processors, no Go timer is left to
// end them. So the guest counts its own steps. At the head of each loop, and on entry to each function that calls
// another one (recursion needs no loop), it does
//
//	fuel = fuel - 1; if fuel == 0 { call tick }
//
// where tick, a function added to the module, is
//
//	fuel = Period; memory.grow beyond the maximum; if stop { unreachable }
//
// memory.grow leaves compiled code for Go, where the scheduler can preempt. It asks the host's allocator, which
// returns a failure and lets other goroutines run (Rewritten.SparePages). stop is a global that the host sets
// (StopGlobal). The counter is a global, too. It takes no address from the guest and needs no thread to set a flag,
// and no index of the module moves. An instruction that fills or copies is a step for each 256 of its bytes or
// elements, paid for before it.
//
// The tables of the result grow as far as the host allows (Bound).  DWARF sections are left out, because the offsets in
// them are wrong afterwards; Lines has what they said of source lines.
//
// Errors: those of Decode, for the bodies of functions; the cause of ctx, when that ends.
func (m *Module) Meter(ctx context.Context) (Rewritten, error) { return m.rewrite(ctx, true) }

// Rewritten is a module that was rewritten.
type Rewritten struct {
	Module []byte
	Lines  *Lines // nil when the module has neither a line table nor a source map
	// SparePages is by how many pages the maximum of its memory is above that of the guest.  The allocator must refuse
	// them: it is asked for them each Period steps.
	SparePages uint64
}

// Validate decodes the bodies of functions, and only that.  Errors: those of Decode.
func (m *Module) Validate() error {
	_, err := m.decodeBodies(context.Background(), nil)
	return err
}

func (m *Module) rewrite(ctx context.Context, metered bool) (Rewritten, error) {
	if m.importedTables > 0 {
		return Rewritten{}, wrapFormat(errors.New("it imports a table"))
	}
	w := newRewriting(m, metered)
	w.addMemory()
	w.addTypes()
	w.addFunctions()
	w.addGlobals()
	w.addExports()
	lines, err := w.rewriteCode(ctx)
	if err != nil {
		return Rewritten{}, err
	}
	return Rewritten{w.encode(), lines, w.sparePages()}, nil
}

// reserved is what the names of exports begin with that are added.
const reserved = "rdmarun:"

// rewriting is the state of rewriting a module.
type rewriting struct {
	*Module
	metered  bool
	sections [sectionDataCount + 1]vector // those of the module, extended
	added    uint32                       // index of the first global that is added: room, grown, fuel, stop
	// index of the first function that is added: one that grows for each table, tick, pay
	function uint32
	types    uint32 // index of the first type that is added
	check    []byte // the instructions put at each loop and function
	// the maximum of its memory in pages, with the one that it never gets; 0 if there is none
	beyond uint32
}

func newRewriting(m *Module, metered bool) *rewriting {
	w := &rewriting{Module: m, metered: metered, sections: m.sections,
		added: uint32(len(m.globals)), function: uint32(len(m.functions)), types: uint32(len(m.types))}
	if metered {
		w.check = w.checkInstructions()
	}
	return w
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
	grow := code{opI32Const, 0}
	if m.beyond > 0 {
		grow = append(appendSigned([]byte{opI32Const}, int64(m.beyond)), opMemorySize, 0, opI32Sub)
	}
	return code(appendPeriod([]byte{opI32Const})).with(opGlobalSet, m.fuel()).
		op(grow...).op(opMemoryGrow, 0, opDrop).
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

// appendPeriod appends Period as a signed number.
func appendPeriod(out []byte) []byte { return appendSigned(out, period) }

// maxPages is how large a memory can become, in pages, so that one more can be asked for.
const maxPages = 1<<16 - 1

// addMemory gives a module that has no memory one without pages.  The maximum of either becomes one above what the
// guest gets.
func (m *rewriting) addMemory() {
	own := m.Facts.HasMemory && m.Facts.MinPages <= maxPages
	if !m.metered || !own && m.memories > 0 {
		return
	}
	m.beyond = uint32(min(m.Facts.MaxPages, maxPages)) + 1 // 1 for none
	all := limits{minimum: uint32(m.Facts.MinPages), maximum: m.beyond, bounded: true, shared: m.Facts.SharedMemory}
	m.sections[sectionMemory] = vector{1, all.append(nil)}
}

func (m *rewriting) sparePages() uint64 {
	if m.beyond == 0 {
		return 0
	}
	return 1
}

func (m *rewriting) addTypes() { m.extend(sectionType, addedTypes, 4) }

// addedFunctions is how many functions are added.
func (m *rewriting) addedFunctions() uint32 {
	added := uint32(len(m.tables))
	if m.metered {
		added += 2
	}
	return added
}

func (m *rewriting) addFunctions() {
	var types []byte
	for _, each := range m.tables {
		types = appendUnsigned(types, uint64(m.types+each.growType()))
	}
	if m.metered {
		types = appendUnsigned(types, uint64(m.types+typeTick))
		types = appendUnsigned(types, uint64(m.types+typePay))
	}
	m.extend(sectionFunction, types, m.addedFunctions())
}

// addedBodies are those of the added functions, as the code section has them.
func (m *rewriting) addedBodies() []byte {
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

func (m *rewriting) addGlobals() {
	const mutable = 1
	zero := []byte{typeI32, mutable, opI32Const, 0, opEnd}
	added, entries := uint32(2), append(append([]byte(nil), zero...), zero...)
	if m.metered {
		added = 4
		entries = append(appendPeriod(append(entries, typeI32, mutable, opI32Const)), opEnd)
		entries = append(entries, zero...)
	}
	m.extend(sectionGlobal, entries, added)
}

func (m *rewriting) addExports() {
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
	m.extend(sectionExport, entries, added)
}

func appendExport(out []byte, name string, kind Kind, index uint32) []byte {
	return appendUnsigned(append(appendName(out, name), byte(kind)), uint64(index))
}

// extend appends entries to a section.
func (m *rewriting) extend(id byte, entries []byte, added uint32) {
	section := &m.sections[id]
	section.count += added
	section.items = append(slices.Clip(section.items), entries...)
}

// encode is the module as it was decoded and extended.  Of custom sections it has none but those that Lines needs.
func (m *rewriting) encode() []byte {
	size := len(header)
	for _, each := range m.sections {
		size += len(each.items) + 12
	}
	out := append(make([]byte, 0, size+512), header...)
	for _, id := range sectionOrder {
		section, counted := m.sections[id], []byte(nil)
		switch {
		case id == sectionStart: // exported instead
			continue
		case id == sectionDataCount && m.dataCount >= 0:
			counted = appendUnsigned(nil, uint64(m.dataCount))
		case section.count == 0:
			continue
		default:
			counted = appendUnsigned(nil, uint64(section.count))
		}
		out = appendUnsigned(append(out, id), uint64(len(counted)+len(section.items)))
		out = append(append(out, counted...), section.items...)
	}
	if m.lines != nil {
		out = append(out, placeholders()...)
	}
	return out
}

// rewriteCode encodes the bodies with the checks put into each, and adds the functions'.
func (m *rewriting) rewriteCode(ctx context.Context) (*Lines, error) {
	runs, err := m.decodeBodies(ctx, func() *bodyWriter {
		w := &bodyWriter{rewriting: m}
		if m.lines != nil {
			w.lines = &Lines{}
		}
		return w
	})
	if err != nil {
		return nil, err
	}
	section := vector{count: uint32(len(m.bodies)) + m.addedFunctions()}
	var lines *Lines
	if m.lines != nil {
		lines = &Lines{tables: m.lines.tables, code: m.code}
	}
	size := 0
	for _, each := range runs {
		size += len(each.writer.section)
	}
	section.items = make([]byte, 0, size+512)
	counted := len(appendUnsigned(nil, uint64(section.count))) // places are counted from before the section's count
	for _, each := range runs {
		lines.join(each.writer.lines, counted+len(section.items))
		section.items = append(section.items, each.writer.section...)
	}
	section.items = append(section.items, m.addedBodies()...)
	m.sections[sectionCode] = section
	return lines, nil
}

// RoomGlobal and GrownGlobal are exported globals of a rewritten module. The host sets RoomGlobal: by how many
// elements all tables together may still grow. GrownGlobal is by how many they have grown.
const (
	RoomGlobal  = "rdmarun:room"
	GrownGlobal = "rdmarun:grown"
)

// ElementSize is what an element of a table takes.  wazero keeps a table in a slice that append grows: some
// of it is spare, and the last one is garbage for a while.
const ElementSize = 32

// Bound rewrites a module so that its tables grow only as far as the host allows.
//
// wazero grows a table without asking the host, and a table without a maximum may have 2^32 elements of 8 bytes.  So
// each table.grow becomes a call of a function that is added:
//
//	if n > room { return -1 }
//	if table.grow succeeds { room = room - n; grown = grown + n }
//
// Errors: those of Meter.
func (m *Module) Bound(ctx context.Context) (Rewritten, error) { return m.rewrite(ctx, false) }

// growType is which of the added types the function has that grows the table.
func (t table) growType() uint32 {
	if t.reference == letterExternal {
		return typeGrowExternref
	}
	return typeGrowFuncref
}

func (m *rewriting) growBody(index uint32) code {
	minusOne := []byte{opI32Const, 0x7f}
	return code(nil).with(opLocalGet, 1).with(opGlobalGet, m.room()).op(opI32GtU, opIf, blockTypeEmpty).
		op(minusOne...).op(opReturn, opEnd).
		with(opLocalGet, 0).with(opLocalGet, 1).op(prefixBulk).with(byte(opTableGrow&0xff), index).with(opLocalTee, 2).
		op(minusOne...).op(opI32Ne, opIf, blockTypeEmpty).
		with(opGlobalGet, m.room()).with(opLocalGet, 1).op(opI32Sub).with(opGlobalSet, m.room()).
		with(opGlobalGet, m.grown()).with(opLocalGet, 1).op(opI32Add).with(opGlobalSet, m.grown()).
		op(opEnd).with(opLocalGet, 2).op(opEnd)
}
