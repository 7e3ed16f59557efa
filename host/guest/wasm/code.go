package wasm

import (
	"errors"
	"fmt"
	"slices"
)

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
		var err error
		if body, err = m.rewriteBody(body[:0], r.bytes(size)); err != nil {
			return fmt.Errorf("function body %d: %w", i, err)
		}
		out = append(appendUnsigned(out, uint64(len(body))), body...)
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
	copied, calls := entry, false
	for r.more() {
		at := r.pos
		switch r.instruction() {
		case opLoop:
			out = append(append(out, body[copied:r.pos]...), m.check...)
			copied = r.pos
		case opGlobalGet, opGlobalSet:
			// The module is validated with the added globals; its own code must not know them.
			if index := (&reader{data: body, pos: at + 1}).index(); index >= m.added {
				return nil, fmt.Errorf("%w: global %d does not exist", ErrFormat, index)
			}
		case opCall, opCallIndirect, opReturnCall, opReturnCallIndirect:
			calls = true
		case opBulk:
			out = append(out, body[copied:at]...)
			copied = at
			operation := &reader{data: body, pos: at + 1}
			switch operation.index() {
			case bulkMemoryInit, bulkMemoryCopy, bulkMemoryFill, bulkTableInit, bulkTableCopy, bulkTableFill:
				if m.metered {
					out = code(out).with(opCall, m.pay())
				}
			case bulkTableGrow:
				index := operation.index()
				if index >= uint32(len(m.tables)) {
					return nil, fmt.Errorf("%w: table %d does not exist", ErrFormat, index)
				}
				out = code(out).with(opCall, m.function+index)
				copied = r.pos
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
	}
	return out, nil
}
