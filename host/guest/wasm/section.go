package wasm

import (
	"errors"
	"fmt"
	"strings"
)

// Section ids (WebAssembly Core Specification 2.0, section 5.5.2).
const (
	sectionCustom   = 0
	sectionType     = 1
	sectionImport   = 2
	sectionFunction = 3
	sectionTable    = 4
	sectionMemory   = 5
	sectionGlobal   = 6
	sectionExport   = 7
	sectionStart    = 8
	sectionElement  = 9
	sectionCode     = 10
	sectionData     = 11
)

// ErrFormat is what is wrong with bytes that are no WebAssembly module at all.
var ErrFormat = errors.New("not a WebAssembly module")

var header = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

type section struct {
	id      byte
	name    string // custom sections
	content []byte
}

// split cuts a module into its sections.  The contents share the module's bytes.
func split(wasm []byte) ([]section, error) {
	if len(wasm) < len(header) || string(wasm[:4]) != string(header[:4]) {
		return nil, ErrFormat
	}
	if string(wasm[4:8]) != string(header[4:]) {
		return nil, fmt.Errorf("%w: version %#x, where a core module has 1 (is it a component?)",
			ErrFormat, wasm[4:8])
	}
	var sections []section
	r := &reader{data: wasm, pos: len(header)}
	for r.more() {
		one := section{id: r.byte()}
		one.content = r.bytes(r.unsigned())
		if one.id == sectionCustom {
			custom := &reader{data: one.content}
			one.name = custom.name()
		}
		sections = append(sections, one)
	}
	if r.err != nil {
		return nil, fmt.Errorf("%w: %w", ErrFormat, r.err)
	}
	return sections, nil
}

func join(sections []section) []byte {
	size := len(header)
	for _, one := range sections {
		size += len(one.content) + 6
	}
	wasm := append(make([]byte, 0, size), header...)
	for _, one := range sections {
		wasm = append(wasm, one.id)
		wasm = appendUnsigned(wasm, uint64(len(one.content)))
		wasm = append(wasm, one.content...)
	}
	return wasm
}

// find returns the section of that id, or nil.
func find(sections []section, id byte) *section {
	for i := range sections {
		if sections[i].id == id {
			return &sections[i]
		}
	}
	return nil
}

// sectionRank is the place of a section in a module; their ids are not in that order.
func sectionRank(id byte) int {
	const order = "\x01\x02\x03\x04\x05\x0d\x06\x07\x08\x09\x0c\x0a\x0b"
	return strings.IndexByte(order, id)
}
