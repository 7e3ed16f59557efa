package wasm

import (
	"errors"
	"fmt"
	"slices"
)

// rewriteCode copies the code section with the check put into each body, and adds tick's body.
func (m *metering) rewriteCode() error {
	code := find(m.sections, sectionCode)
	if code == nil {
		code = m.insert(sectionCode)
	}
	r := &reader{data: code.content}
	count := r.index()
	out := make([]byte, 0, len(code.content)+len(code.content)/4)
	out = appendUnsigned(out, uint64(count+1))
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
	code.content = append(out, m.tickBody()...)
	return nil
}

// rewriteBody returns one function's body with its checks, in the space of out, which is empty.
func (m *metering) rewriteBody(out, body []byte) ([]byte, error) {
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
			if index := (&reader{data: body, pos: at + 1}).index(); index >= m.fuel {
				return nil, fmt.Errorf("%w: global %d does not exist", ErrFormat, index)
			}
		case opCall, opCallIndirect, opReturnCall, opReturnCallIndirect:
			calls = true
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	out = append(out, body[copied:]...)
	// A loop that comes first (Go's compiler begins most functions so) checks for the entry too.
	if calls && body[entry] != opLoop {
		out = slices.Insert(out, entry, m.check...)
	}
	return out, nil
}
