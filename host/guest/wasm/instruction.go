package wasm

import (
	"encoding/binary"
	"fmt"
)

// instructionType is a row of the tables of instructions.  The decoder uses the immediates, the validator the types,
// and the encoder both.
type instructionType struct {
	code       byte // behind the prefix
	name       string
	immediates immediates
	// the types that it takes and gives, as in a Signature; validate computes those that are not always the same
	params  string
	results string
	size    byte // of a memory access: its bytes' logarithm; of a vector: its lanes
}

// immediates is what follows an instruction's code.
type immediates byte

const (
	none            immediates = iota
	blockType                  // nothing, a value type, or a type's index
	label                      // how many blocks out
	labels                     // several, and one more
	function                   // its index, as the next ones
	typeAndTable               //
	selectType                 // one value type
	local                      //
	global                     //
	tableIndex                 //
	memoryIndex                // 0, which is all that a module may have; this and the next need a memory
	memoryAccess               // alignment and offset
	atomicAccess               // the same, and the alignment must be the access's
	memoryLane                 // the same, and a lane
	dataAndMemory              //
	memoryAndMemory            //
	constI32                   //
	constI64                   //
	constF32                   // 4 bytes
	constF64                   // 8 bytes
	constV128                  // 16 bytes
	lane                       //
	lanes                      // 16 of them
	referenceType              //
	data                       //
	element                    //
	elementAndTable            //
	tableAndTable              //
	fence                      // 0
)

// The prefixes of instructions (WebAssembly Core Specification 2.0, section 5.4).
const (
	prefixBulk   = 0xfc
	prefixVector = 0xfd
	prefixAtomic = 0xfe
)

// instructionSet are the tables by code.
var instructionSet = struct{ plain, bulk, vector, atomic [256]*instructionType }{
	plain: byCode(instructions), bulk: byCode(bulkInstructions), vector: byCode(vectorInstructions),
	atomic: byCode(atomicInstructions),
}

func byCode(rows []instructionType) (table [256]*instructionType) {
	for i := range rows {
		table[rows[i].code] = &rows[i]
	}
	return table
}

// opcode is an instruction's prefix, 0 for none, and its code.
type opcode uint16

// instruction is a decoded one.
type instruction struct {
	*instructionType
	opcode opcode
	index  uint32    // the immediate, or the first
	second uint32    // the second; of a memory access the logarithm of its alignment
	lane   byte      // of those that access memory, too
	value  uint64    // of a constant, its bits; of a memory access, its offset
	wide   [16]byte  // of a vector
	labels []uint32  // of br_table, without its last
	block  Signature // of a block
	form   byte      // of a block's type: blockTypeEmpty, blockTypeIndex, or the letter of the value
}

const (
	blockTypeEmpty = 0x40
	blockTypeIndex = 0
)

// instruction reads one instruction with its indices unchanged; the validator looks at what they refer to.
func (r *reader) instruction(in *instruction, types []Signature) {
	at := r.pos
	code := r.byte()
	if plain := instructionSet.plain[code]; plain != nil && plain.immediates == none && r.err == nil { // most are
		in.opcode, in.instructionType = opcode(code), plain
		return
	}
	table, prefix := &instructionSet.plain, byte(0)
	switch code {
	case prefixBulk:
		table, prefix = &instructionSet.bulk, code
	case prefixVector:
		table, prefix = &instructionSet.vector, code
	case prefixAtomic:
		table, prefix = &instructionSet.atomic, code
	}
	if prefix != 0 {
		second := r.index()
		switch {
		case r.err != nil:
			return
		case prefix == prefixVector && second >= 0x100 && second <= 0x113:
			r.failAt(at, unsupported(relaxedSIMD))
			return
		case second > 0xff:
			r.failAt(at, fmt.Errorf("instruction %#x %d is not known", prefix, second))
			return
		case r.pos-at-1 != 1+int(second>>7):
			r.failAt(at, fmt.Errorf("instruction %#x %d is written with more bytes than it needs", prefix, second))
			return
		}
		code = byte(second)
	}
	in.opcode, in.instructionType = opcode(prefix)<<8|opcode(code), table[code]
	if in.instructionType == nil {
		switch feature := missingOf(code); {
		case r.err != nil:
		case prefix != 0:
			r.failAt(at, fmt.Errorf("instruction %#x %d is not known", prefix, code))
		case feature != nil:
			r.failAt(at, unsupported(feature))
		default:
			r.failAt(at, fmt.Errorf("instruction %#x is not known", code))
		}
		return
	}
	if in.immediates != none {
		r.immediates(in, types)
	}
}

func (r *reader) immediates(in *instruction, types []Signature) {
	switch in.immediates {
	case blockType:
		r.blockType(in, types)
	case label, function, local, global, tableIndex, data, element:
		in.index = r.index()
	case labels:
		r.labels(in)
	case typeAndTable, elementAndTable, tableAndTable:
		in.index, in.second = r.index(), r.index()
	case selectType:
		if count := r.index(); count != 1 {
			r.fail(fmt.Errorf("select has %d types; it must have 1", count))
		}
		in.lane = r.valueType()
	case referenceType:
		at := r.pos
		if in.lane = r.valueType(); r.err == nil && !isReference(in.lane) {
			r.failAt(at, fmt.Errorf("%s is of a type that is not a reference", in.name))
		}
	case memoryIndex:
		r.memoryIndex()
	case memoryAndMemory:
		r.memoryIndex()
		r.memoryIndex()
	case dataAndMemory:
		in.index = r.index()
		r.memoryIndex()
	case memoryAccess, atomicAccess:
		r.memoryAccess(in)
	case memoryLane:
		r.memoryAccess(in)
		in.lane = r.lane(16 >> in.size)
	case lane:
		in.lane = r.lane(in.size)
	case lanes:
		for i := range in.wide {
			in.wide[i] = r.lane(32)
		}
	case constI32:
		in.value = uint64(r.integer(32))
	case constI64:
		in.value = uint64(r.integer(64))
	case constF32:
		in.value = r.fixed(4)
	case constF64:
		in.value = r.fixed(8)
	case constV128:
		copy(in.wide[:], r.bytes(16))
	case fence:
		if r.byte() != 0 {
			r.fail(fmt.Errorf("%s is followed by something other than 0", in.name))
		}
	}
}

// blockType reads a type of one byte, or an index.  An index is a number of 33 bits, so that it differs from these
// (section 5.4.1).
func (r *reader) blockType(in *instruction, types []Signature) {
	at := r.pos
	in.block, in.index = Signature{}, 0
	if code := r.byte(); code == blockTypeEmpty {
		in.form = code
		return
	} else if code < 0x80 && code >= 0x40 { // negative as a number
		r.pos = at
		in.form = r.valueType()
		in.block.Results = letterText(in.form)
		return
	}
	r.pos = min(at, r.pos)
	index := r.integer(33)
	switch {
	case r.err != nil:
	case index < 0 && index >= -0x40: // wazero and wabt read the type that one byte would be
		r.failAt(at, fmt.Errorf("block type %d is written with more bytes than it needs", index))
	case index < 0 || index >= int64(len(types)):
		r.failAt(at, fmt.Errorf("a block has type %d, and there are %d types", index, len(types)))
	default:
		in.form, in.index, in.block = blockTypeIndex, uint32(index), types[index]
	}
}

func (r *reader) labels(in *instruction) {
	count := r.index()
	if count > maxLabels {
		r.fail(fmt.Errorf("br_table has %d targets; the limit is %d", count, maxLabels))
	}
	in.labels = in.labels[:0]
	for i := uint32(0); i < count && r.err == nil; i++ {
		in.labels = append(in.labels, r.index())
	}
	in.index = r.index()
}

// memoryAccess reads an alignment and an offset.  A module with several memories sets a bit of the first to name one.
func (r *reader) memoryAccess(in *instruction) {
	at := r.pos
	in.second, in.index = r.index(), r.index()
	switch {
	case r.err != nil:
	case in.second >= 1<<6:
		r.failAt(at, unsupported(multiMemory))
	case in.second > uint32(in.size):
		r.failAt(at, fmt.Errorf("%s has an alignment of 2^%d bytes, more than it accesses", in.name, in.second))
	case in.immediates == atomicAccess && in.second != uint32(in.size):
		r.failAt(at, fmt.Errorf("%s has an alignment of 2^%d bytes, and needs 2^%d", in.name, in.second, in.size))
	}
}

// memoryIndex skips the number of a memory, of which there is one.
func (r *reader) memoryIndex() {
	at := r.pos
	if index := r.byte(); index != 0 && r.err == nil {
		r.failAt(at, unsupported(multiMemory))
	}
}

func (r *reader) lane(count byte) byte {
	number := r.byte()
	if number >= count && r.err == nil {
		r.failAt(r.pos-1, fmt.Errorf("lane %d is not one of %d", number, count))
	}
	return number
}

// append writes the instruction in the one shortest way that it can be written.
func (in *instruction) append(out []byte) []byte {
	if prefix := byte(in.opcode >> 8); prefix != 0 {
		out = appendUnsigned(append(out, prefix), uint64(in.code))
	} else {
		out = append(out, in.code)
	}
	switch in.immediates {
	case none:
	case blockType:
		switch in.form {
		case blockTypeEmpty:
			out = append(out, blockTypeEmpty)
		case blockTypeIndex:
			out = appendSigned(out, int64(in.index))
		default:
			out = append(out, typeCode(in.form))
		}
	case label, function, local, global, tableIndex, data, element:
		out = appendUnsigned(out, uint64(in.index))
	case labels:
		out = appendUnsigned(out, uint64(len(in.labels)))
		for _, each := range in.labels {
			out = appendUnsigned(out, uint64(each))
		}
		out = appendUnsigned(out, uint64(in.index))
	case typeAndTable, elementAndTable, tableAndTable:
		out = appendUnsigned(appendUnsigned(out, uint64(in.index)), uint64(in.second))
	case selectType:
		out = append(out, 1, typeCode(in.lane))
	case referenceType:
		out = append(out, typeCode(in.lane))
	case memoryIndex, fence:
		out = append(out, 0)
	case memoryAndMemory:
		out = append(out, 0, 0)
	case dataAndMemory:
		out = append(appendUnsigned(out, uint64(in.index)), 0)
	case memoryAccess, atomicAccess:
		out = appendUnsigned(appendUnsigned(out, uint64(in.second)), uint64(in.index))
	case memoryLane:
		out = append(appendUnsigned(appendUnsigned(out, uint64(in.second)), uint64(in.index)), in.lane)
	case lane:
		out = append(out, in.lane)
	case lanes, constV128:
		out = append(out, in.wide[:]...)
	case constI32, constI64:
		out = appendSigned(out, int64(in.value))
	case constF32:
		out = binary.LittleEndian.AppendUint32(out, uint32(in.value))
	case constF64:
		out = binary.LittleEndian.AppendUint64(out, in.value)
	}
	return out
}

// Codes of instructions that the validator or the rewriting treats by itself.
const (
	opUnreachable        = 0x00
	opBlock              = 0x02
	opLoop               = 0x03
	opIf                 = 0x04
	opElse               = 0x05
	opEnd                = 0x0b
	opBr                 = 0x0c
	opBrIf               = 0x0d
	opBrTable            = 0x0e
	opReturn             = 0x0f
	opCall               = 0x10
	opCallIndirect       = 0x11
	opReturnCall         = 0x12
	opReturnCallIndirect = 0x13
	opDrop               = 0x1a
	opSelect             = 0x1b
	opSelectType         = 0x1c
	opLocalGet           = 0x20
	opLocalSet           = 0x21
	opLocalTee           = 0x22
	opGlobalGet          = 0x23
	opGlobalSet          = 0x24
	opTableGet           = 0x25
	opTableSet           = 0x26
	opMemorySize         = 0x3f
	opMemoryGrow         = 0x40
	opI32Const           = 0x41
	opI64Const           = 0x42
	opF32Const           = 0x43
	opF64Const           = 0x44
	opI32Eqz             = 0x45
	opI32Ne              = 0x47
	opI32LtU             = 0x49
	opI32GtU             = 0x4b
	opI32Add             = 0x6a
	opI32Sub             = 0x6b
	opI32Mul             = 0x6c
	opI32ShrU            = 0x76
	opI64Add             = 0x7c
	opI64Sub             = 0x7d
	opI64Mul             = 0x7e
	opRefNull            = 0xd0
	opRefIsNull          = 0xd1
	opRefFunc            = 0xd2
	opMemoryInit         = prefixBulk<<8 | 8
	opDataDrop           = prefixBulk<<8 | 9
	opMemoryCopy         = prefixBulk<<8 | 10
	opMemoryFill         = prefixBulk<<8 | 11
	opTableInit          = prefixBulk<<8 | 12
	opTableCopy          = prefixBulk<<8 | 14
	opTableGrow          = prefixBulk<<8 | 15
	opTableFill          = prefixBulk<<8 | 17
	opV128Const          = prefixVector<<8 | 12
	opAtomicFence        = prefixAtomic<<8 | 3
)
