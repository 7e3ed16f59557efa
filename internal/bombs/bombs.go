// Package bombs makes WebAssembly modules that are valid, small, and much for a compiler, for tests of what bounds it.
package bombs

import (
	"encoding/binary"
	"slices"
)

// Modules are small modules that take much time or memory to compile, by what they have much of.
func Modules() map[string][]byte {
	number := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	get := func(n int) []byte { return append([]byte{0x20}, number(n)...) }
	set := func(n int) []byte { return append([]byte{0x21}, number(n)...) }
	var blocks, loops, table, straight []byte
	for i := range 20000 { // phis of a thousand locals at the end of each block
		blocks = slices.Concat(
			blocks[:len(blocks):len(blocks)], []byte{0x02, 0x40}, get(i%1000), []byte{0x0d, 0}, get(i*7%1000),
			set(i*3%1000), []byte{0x0b},
		)
	}
	const depth = 4000
	for i := range depth {
		loops = slices.Concat(loops, []byte{0x03, 0x40}, get(i%5000), set((i*3+1)%5000))
	}
	for i := range depth {
		loops = slices.Concat(loops, get(i*7%5000), []byte{0x0d, 0}, get(i*11%5000), set(i*13%5000), []byte{0x0b})
	}
	for range 2000 {
		table = append(table, 0x02, 0x40)
	}
	for range 50 {
		table = slices.Concat(table, []byte{0x02, 0x40, 0x20, 0, 0x0e}, number(1999))
		for i := range 2000 {
			table = append(table, number(i%2000)...)
		}
		table = append(table, 0x0b)
	}
	for range 2000 {
		table = append(table, 0x0b)
	}
	for i := range 30000 {
		straight = slices.Concat(straight, get(i*7919%50000), get(i*104729%50000), []byte{0x6a}, set(i*31%50000))
	}
	return map[string][]byte{
		"blocks": module(1000, blocks), "phis": module(5000, loops), "br_table": module(2, table),
		"locals": module(50000, straight),
	}
}

// module has one function of that body, which has so many locals.
func module(locals int, body []byte) []byte {
	number := func(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }
	section := func(id byte, content ...byte) []byte {
		return slices.Concat([]byte{id}, number(len(content)), content)
	}
	code := slices.Concat([]byte{1}, number(locals), []byte{0x7f}, body, []byte{0x0b})
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, 1, 0x60, 0, 0), section(3, 1, 0),
		section(7, slices.Concat([]byte{1, 6}, []byte("_start"), []byte{0, 0})...),
		section(10, slices.Concat([]byte{1}, number(len(code)), code)...))
}
