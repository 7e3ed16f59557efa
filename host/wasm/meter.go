package wasm

import (
	"errors"
	"fmt"
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

var errNoMemory = errors.New("the module has no memory of its own")

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
// no thread to set a flag, and no index of the module moves.
//
// DWARF sections are left out of the result, for the offsets they map have moved.
func Meter(module []byte) ([]byte, error) {
	sections, err := split(module)
	if err != nil {
		return nil, err
	}
	m, err := newMetering(sections)
	if err != nil {
		return nil, err
	}
	for _, step := range []func() error{m.addType, m.addFunction, m.addGlobals, m.addExports, m.rewriteCode} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return join(m.sections), nil
}

// metering is one rewriting under way.
type metering struct {
	sections []section
	fuel     uint32 // index of the global
	stop     uint32
	tick     uint32 // index of the function
	tickType uint32
	start    uint32 // index of the function of the start section, if there is one
	hasStart bool
	check    []byte // the instructions put at each loop and function
}

func newMetering(sections []section) (*metering, error) {
	m := &metering{}
	memories := uint32(0)
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
					m.tick++
				case KindGlobal:
					m.fuel++
				case KindMemory:
					memories++
				}
			}
		case one.id == sectionFunction:
			m.tick += count
		case one.id == sectionGlobal:
			m.fuel += count
		case one.id == sectionMemory:
			memories += count
		case one.id == sectionStart:
			m.start, m.hasStart = count, true // which is the function's index
			continue
		}
		m.sections = append(m.sections, one)
	}
	if memories == 0 {
		return nil, errNoMemory
	}
	m.stop = m.fuel + 1
	m.check = m.checkInstructions()
	return m, nil
}

func isDebug(name string) bool { return len(name) > 7 && name[:7] == ".debug_" }

func (m *metering) checkInstructions() []byte {
	var code []byte
	code = appendUnsigned(append(code, opGlobalGet), uint64(m.fuel))
	code = append(code, opI32Const, 1, opI32Sub)
	code = appendUnsigned(append(code, opGlobalSet), uint64(m.fuel))
	code = appendUnsigned(append(code, opGlobalGet), uint64(m.fuel))
	code = append(code, opI32Eqz, opIf, blockTypeEmpty)
	code = appendUnsigned(append(code, opCall), uint64(m.tick))
	return append(code, opEnd)
}

// tickBody is the body of the added function, with its size in front as in the code section.
func (m *metering) tickBody() []byte {
	code := []byte{0} // no locals
	code = appendPeriod(append(code, opI32Const))
	code = appendUnsigned(append(code, opGlobalSet), uint64(m.fuel))
	code = append(code, opI32Const, 0, opMemoryGrow, 0, opDrop)
	code = appendUnsigned(append(code, opGlobalGet), uint64(m.stop))
	code = append(code, opIf, blockTypeEmpty, opUnreachable, opEnd, opEnd)
	return append(appendUnsigned(nil, uint64(len(code))), code...)
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

func (m *metering) addType() error {
	return m.extend(sectionType, func(count uint32) []byte {
		m.tickType = count
		return []byte{typeFunction, 0, 0}
	}, 1)
}

func (m *metering) addFunction() error {
	return m.extend(sectionFunction, func(uint32) []byte {
		return appendUnsigned(nil, uint64(m.tickType))
	}, 1)
}

func (m *metering) addGlobals() error {
	return m.extend(sectionGlobal, func(uint32) []byte {
		const mutable = 1
		fuel := append(appendPeriod([]byte{typeI32, mutable, opI32Const}), opEnd)
		return append(fuel, typeI32, mutable, opI32Const, 0, opEnd)
	}, 2)
}

func (m *metering) addExports() error {
	added := uint32(1)
	entries := appendExport(nil, StopGlobal, KindGlobal, m.stop)
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
func (m *metering) extend(id byte, entries func(count uint32) []byte, added uint32) error {
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
func (m *metering) insert(id byte) *section {
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
