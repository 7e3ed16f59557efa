package wasm

import "fmt"

// How many of each thing a module may have.  A few bytes of it become large objects of the compiler and of an instance, so
// the size of a file alone says little: two bytes can ask for 2^32 local variables.  Programs with a whole language
// runtime stay at a tenth of these; browsers have limits of the same order.
const (
	maxItems    = 1 << 17 // types, imports, functions, globals, exports, segments: of each
	maxTables   = 100
	maxElements = 1 << 20 // of all segments for tables
	maxValues   = 1000    // parameters of a function, or results
	maxLocals   = 50_000  // of a function
	allLocals   = 1 << 22 // of all functions
	maxBody     = 1 << 20 // bytes of a function
)

// The host's memory for a thing of an instance, in bytes, in wazero.
const (
	functionSize = 16
	globalSize   = 96
	segmentSize  = 32
	elementSize  = 8 // as long as no table has grown
)

// limits reads from a section how many of everything it has, and how much memory an instance takes for it.
func (f *Facts) limits(one section, locals *uint64) error {
	r := &reader{data: one.content}
	switch one.id {
	case sectionType, sectionImport, sectionExport:
		r.items(maxItems)
	case sectionFunction:
		f.InstanceSize += uint64(r.items(maxItems)) * functionSize
	case sectionGlobal:
		f.InstanceSize += uint64(r.items(maxItems)) * globalSize
	case sectionData:
		f.InstanceSize += uint64(r.items(maxItems)) * segmentSize
	case sectionTable:
		if r.items(maxTables); r.err == nil {
			return f.limitTables(one.content)
		}
	case sectionElement:
		f.elements(r)
	case sectionTag:
		return unsupported(exceptions)
	case sectionCode:
		bodies(r, locals)
	}
	if r.err != nil {
		return wrapFormat(fmt.Errorf("section %d, %w", one.id, r.failure()))
	}
	return nil
}

func (r *reader) items(most uint32) uint32 {
	count := r.index()
	if count > most {
		r.fail(fmt.Errorf("a section has %d items, and %d are the most", count, most))
	}
	return count
}

func (f *Facts) limitTables(content []byte) error {
	tables, err := parseTables(content)
	for _, each := range tables {
		f.InstanceSize += each.minimum * elementSize
	}
	return err
}

// elements reads the element section (WebAssembly Core Specification 2.0, section 5.5.12).
func (f *Facts) elements(r *reader) {
	const passive, indexed, expressions = 1, 2, 4
	count, all := r.items(maxItems), uint64(0)
	f.InstanceSize += uint64(count) * segmentSize
	for range count {
		kind := r.index()
		if kind > passive|indexed|expressions {
			r.fail(fmt.Errorf("element segments of kind %d are not known", kind))
		}
		if kind&passive == 0 {
			if kind&indexed != 0 {
				r.index() // of the table
			}
			r.expression() // the place in it
		}
		if kind&(passive|indexed) != 0 {
			r.byte() // the type of the elements
		}
		entries := r.items(maxElements)
		if all += uint64(entries); all > maxElements {
			r.fail(fmt.Errorf("its tables are filled with more than %d elements", maxElements))
		}
		for range entries {
			if r.err != nil {
				return
			}
			if kind&expressions != 0 {
				r.expression()
			} else {
				r.index()
			}
		}
	}
	f.InstanceSize += all * elementSize
}

// bodies reads the code section, of each function the number of its local variables.
func bodies(r *reader, all *uint64) {
	for range r.items(maxItems + 1) {
		size := r.unsigned()
		if size > maxBody {
			r.fail(fmt.Errorf("a function has %d bytes, and %d are the most", size, maxBody))
		}
		body := &reader{data: r.bytes(size)}
		if r.err != nil {
			return
		}
		locals := uint64(0)
		body.vector(func() {
			locals += uint64(body.index())
			body.leb()
		})
		if *all += locals; locals > maxLocals || *all > allLocals {
			r.fail(fmt.Errorf("a function has %d local variables; %d are the most, and %d for all functions", locals, maxLocals, allLocals))
		}
		if body.err != nil {
			r.fail(body.err)
		}
	}
}
