package wasm

import "fmt"

// instruction skips one instruction and returns its opcode.  An unknown opcode fails the reader, as the length of its
// immediates is unknown.
func (r *reader) instruction() byte {
	opcode := r.byte()
	r.uses |= featureOf(opcode)
	switch {
	case opcode <= 0x01, opcode == 0x05, opcode == opEnd, opcode == 0x0f,
		opcode == opDrop, opcode == 0x1b,
		opcode >= 0x45 && opcode <= 0xc4, opcode == 0xd1:
		// no immediates
	case opcode >= 0x02 && opcode <= opIf:
		r.leb() // block type
	case opcode == 0x0c, opcode == 0x0d, opcode == opCall, opcode == opReturnCall,
		opcode >= 0x20 && opcode <= 0x26, opcode == 0xd2:
		r.index()
	case opcode == 0x0e: // br_table
		r.vector(func() { r.index() })
		r.index()
	case opcode == opCallIndirect, opcode == opReturnCallIndirect:
		r.index()
		r.index()
	case opcode == 0x1c: // select with types
		r.vector(r.leb)
	case opcode >= 0x28 && opcode <= 0x3e:
		r.memoryArgument()
	case opcode == 0x3f, opcode == opMemoryGrow:
		r.memoryIndex()
	case opcode == opI32Const, opcode == 0x42, opcode == 0xd0:
		r.leb()
	case opcode == 0x43:
		r.skip(4)
	case opcode == 0x44:
		r.skip(8)
	case opcode == 0xfc:
		r.bulkInstruction()
	case opcode == 0xfd:
		r.vectorInstruction()
	case opcode == 0xfe:
		r.atomicInstruction()
	case r.err == nil:
		if feature := missingOf(opcode); feature != nil {
			r.fail(unsupported(feature))
		}
		r.fail(fmt.Errorf("instruction %#x is not known", opcode))
	}
	return opcode
}

func (r *reader) memoryArgument() {
	if align := r.unsigned(); align >= 1<<6 {
		r.fail(unsupported(multiMemory))
	}
	r.unsigned()
}

// memoryIndex skips the number of a memory, of which there is one.
func (r *reader) memoryIndex() {
	if index := r.byte(); index != 0 && r.err == nil {
		r.fail(unsupported(multiMemory))
	}
}

func (r *reader) bulkInstruction() {
	code := r.index()
	if code <= 7 {
		r.uses |= saturating
	} else {
		r.uses |= bulkMemory
	}
	switch {
	case code <= 7: // saturating truncation
	case code == bulkMemoryInit:
		r.index() // of the data
		r.memoryIndex()
	case code == bulkMemoryCopy:
		r.memoryIndex()
		r.memoryIndex()
	case code == bulkMemoryFill:
		r.memoryIndex()
	case code == 9, code == 13, code >= 15 && code <= 17:
		r.index()
	case code == bulkTableInit, code == bulkTableCopy:
		r.index()
		r.index()
	default:
		r.fail(fmt.Errorf("instruction 0xfc %d is not known", code))
	}
}

func (r *reader) vectorInstruction() {
	switch code := r.index(); {
	case code <= 11, code == 92, code == 93:
		r.memoryArgument()
	case code == 12, code == 13: // v128.const, i8x16.shuffle
		r.skip(16)
	case code >= 21 && code <= 34: // lanes
		r.byte()
	case code >= 84 && code <= 91: // one lane from or to memory
		r.memoryArgument()
		r.byte()
	case code >= 0x100 && code <= 0x113:
		r.fail(unsupported(relaxedSIMD))
	case code > 0xff:
		r.fail(fmt.Errorf("instruction 0xfd %d is not known", code))
	}
}

func (r *reader) atomicInstruction() {
	switch code := r.index(); {
	case code == 3: // atomic.fence
		r.byte()
	case code <= 2, code >= 0x10 && code <= 0x4e:
		r.memoryArgument()
	default:
		r.fail(fmt.Errorf("instruction 0xfe %d is not known", code))
	}
}
