package wasm

import (
	"bytes"
	"slices"
)

// generated is a module with one function of instructions that bytes choose. An instruction that the validator rejects
// is left out, unless the bytes want it. So most of these modules are valid, or have one invalid place.
func generated(choices []byte) []byte {
	g := &generator{choices: choices}
	m, err := Decode(surroundings(nil))
	if err != nil {
		panic(err)
	}
	g.v = &validator{m: m, in: &g.in}
	g.v.locals = []byte("iIfFvrxi")
	g.v.begin(&reader{}, m.types[1])
	body := []byte("\x07\x01\x7e\x01\x7d\x01\x7c\x01\x7b\x01\x70\x01\x6f\x01\x7f") // behind the parameter
	for len(g.choices) > 0 && !g.v.ended() {
		g.choose(m)
		encoded := g.in.append(nil)
		if g.accepts(encoded) || g.byte() == 0xff && g.byte() < 0x20 {
			body = append(body, encoded...)
		}
	}
	for _, each := range slices.Backward(g.v.blocks) {
		if each.opcode == opIf {
			body = append(body, opUnreachable, opElse)
		}
		body = append(body, opUnreachable, opEnd)
	}
	return surroundings(body)
}

// surroundings are a module with something of each kind for a body to refer to.
func surroundings(body []byte) []byte {
	if body == nil {
		body = []byte{0, opUnreachable, opEnd}
	}
	sized := string(appendUnsigned(nil, uint64(len(body)))) + string(body)
	return assembled(
		part(
			sectionType,
			"\x05\x60\x00\x00\x60\x01\x7f\x01\x7f\x60\x02\x7f\x7e\x02\x7e\x7f\x60\x02\x7b\x70\x01\x7b\x60\x01"+
				"\x6f\x02\x70\x6f",
		),
		part(sectionImport, "\x02\x01m\x01f\x00\x00\x01m\x01g\x03\x7f\x00"),
		part(sectionFunction, "\x02\x01\x02"),
		part(sectionTable, "\x02\x70\x01\x01\x09\x6f\x00\x01"),
		part(sectionMemory, "\x01\x01\x01\x02"),
		part(sectionGlobal, "\x07\x7f\x01\x23\x00\x0b\x7e\x01\x42\x01\x0b\x7d\x01\x43\x00\x00\x00\x00\x0b\x7c"+
			"\x01\x44\x00\x00\x00\x00\x00\x00\x00\x00\x0b"+
			"\x70\x01\xd2\x01\x0b\x6f\x01\xd0\x6f\x0b\x7f\x00\x41\x01\x41\x02\x6a\x0b"),
		part(sectionExport, "\x01\x01e\x00\x01"),
		part(sectionElement, "\x03\x00\x41\x00\x0b\x01\x02\x01\x00\x01\x01\x05\x6f\x01\xd0\x6f\x0b"),
		part(sectionDataCount, "\x01"),
		part(sectionCode, "\x02"+sized+"\x03\x00\x00\x0b"),
		part(sectionData, "\x01\x01\x01a"))
}

type generator struct {
	choices []byte
	in      instruction
	v       *validator
}

func (g *generator) byte() byte {
	if len(g.choices) == 0 {
		return 0
	}
	b := g.choices[0]
	g.choices = g.choices[1:]
	return b
}

// small is mostly an index that there is.
func (g *generator) small() uint32 {
	if b := g.byte(); b < 0xf8 {
		return uint32(b % 8)
	}
	return uint32(g.wide(4))
}

func (g *generator) wide(bytes int) (value uint64) {
	for range bytes {
		value = value<<8 | uint64(g.byte())
	}
	return value
}

// choose makes up an instruction of any kind with its immediates.
func (g *generator) choose(m *Module) {
	table, prefix := &instructionSet.plain, opcode(0)
	switch kind := g.byte(); {
	case kind < 0x40:
		table, prefix = &instructionSet.vector, prefixVector
	case kind < 0x50:
		table, prefix = &instructionSet.atomic, prefixAtomic
	case kind < 0x70:
		table, prefix = &instructionSet.bulk, prefixBulk
	}
	code := g.byte()
	for table[code] == nil {
		code++
	}
	g.in = instruction{instructionType: table[code], opcode: prefix<<8 | opcode(code), index: g.small()}
	switch in := &g.in; in.immediates {
	case blockType:
		letter := valueLetters[g.byte()%7]
		switch forms := g.byte(); {
		case forms < 0x40:
			in.form = blockTypeEmpty
		case forms < 0x80:
			in.form, in.block.Results = letter, letterText(letter)
		default:
			in.form, in.index = blockTypeIndex, in.index%uint32(len(m.types))
			in.block = m.types[in.index]
		}
	case labels:
		for range g.byte() % 16 {
			in.labels = append(in.labels, g.small())
		}
	case typeAndTable, elementAndTable, tableAndTable:
		in.second = g.small()
	case selectType, referenceType:
		in.lane = valueLetters[g.byte()%7]
	case memoryAccess, atomicAccess, memoryLane:
		if in.second = uint32(in.size); g.byte() < 0x10 {
			in.second = g.small()
		}
		in.lane = g.byte() % 16
	case lane:
		in.lane = g.byte() % 16
	case lanes, constV128:
		for i := range in.wide {
			in.wide[i] = g.byte() % 33
		}
	case constI32:
		in.value = uint64(int32(g.wide(4)))
	case constI64, constF32, constF64:
		in.value = g.wide(8)
	}
}

// accepts reports whether the decoder and the validator do; if not, the validator is as it was before.
func (g *generator) accepts(encoded []byte) bool {
	before := *g.v
	before.stack, before.blocks = bytes.Clone(g.v.stack), slices.Clone(g.v.blocks)
	r := &reader{data: encoded}
	g.v.r = r
	if r.instruction(&g.in, g.v.m.types); r.err == nil {
		g.v.check()
	}
	if r.err == nil && !g.v.ended() {
		return true
	}
	*g.v = before
	return false
}
