package wasm

import (
	"errors"
	"fmt"
)

var errTruncated = errors.New("the module ends in the middle of something")

// reader walks a WebAssembly binary.  The first error sticks, so that callers check once at the end
// of a unit instead of after each field.
type reader struct {
	data []byte
	pos  int
	err  error
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
	r.pos = len(r.data)
}

func (r *reader) more() bool { return r.err == nil && r.pos < len(r.data) }

func (r *reader) byte() byte {
	if r.pos >= len(r.data) {
		r.fail(errTruncated)
		return 0
	}
	b := r.data[r.pos]
	r.pos++
	return b
}

func (r *reader) bytes(count uint64) []byte {
	if r.err != nil || count > uint64(len(r.data)-r.pos) {
		r.fail(errTruncated)
		return nil
	}
	taken := r.data[r.pos : r.pos+int(count)]
	r.pos += int(count)
	return taken
}

func (r *reader) skip(count uint64) { r.bytes(count) }

// unsigned reads a LEB128 number of at most 64 bits.
func (r *reader) unsigned() uint64 {
	var value uint64
	for shift := 0; shift < 64; shift += 7 {
		b := r.byte()
		value |= uint64(b&0x7f) << shift
		if b < 0x80 {
			return value
		}
	}
	r.fail(errors.New("a number is longer than 64 bits"))
	return 0
}

// index reads a LEB128 number that fits 32 bits.
func (r *reader) index() uint32 {
	value := r.unsigned()
	if value > 1<<32-1 {
		r.fail(fmt.Errorf("index %d is longer than 32 bits", value))
		return 0
	}
	return uint32(value)
}

// leb skips a LEB128 number of either signedness.
func (r *reader) leb() {
	for n := 0; n < 10; n++ {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail(errors.New("a number is longer than 64 bits"))
}

func (r *reader) name() string { return string(r.bytes(r.unsigned())) }

// vector calls item as often as the count in front of the items says.
func (r *reader) vector(item func()) uint32 {
	count := r.index()
	for i := uint32(0); i < count && r.err == nil; i++ {
		item()
	}
	return count
}

// limits reads those of a memory or table: its minimum, and its maximum when it has one.
func (r *reader) limits() (minimum, maximum uint64, bounded bool) {
	flags := r.byte()
	if flags > 3 {
		r.fail(fmt.Errorf("limits of kind %#x are not known", flags))
		return 0, 0, false
	}
	minimum = r.unsigned()
	if bounded = flags&1 != 0; bounded {
		maximum = r.unsigned()
	}
	return minimum, maximum, bounded
}

func appendUnsigned(out []byte, value uint64) []byte {
	for value >= 0x80 {
		out = append(out, byte(value)|0x80)
		value >>= 7
	}
	return append(out, byte(value))
}

func appendName(out []byte, name string) []byte {
	return append(appendUnsigned(out, uint64(len(name))), name...)
}

// Opcodes the rewriting cares about (WebAssembly Core Specification 2.0, section 5.4).
const (
	opUnreachable        = 0x00
	opLoop               = 0x03
	opIf                 = 0x04
	opEnd                = 0x0b
	opCall               = 0x10
	opCallIndirect       = 0x11
	opReturnCall         = 0x12
	opReturnCallIndirect = 0x13
	opReturn             = 0x0f
	opElse               = 0x05
	opDrop               = 0x1a
	opLocalGet           = 0x20
	opLocalTee           = 0x22
	opGlobalGet          = 0x23
	opGlobalSet          = 0x24
	opMemoryGrow         = 0x40
	opI32Const           = 0x41
	opI32Eqz             = 0x45
	opI32Ne              = 0x47
	opI32LtU             = 0x49
	opI32GtU             = 0x4b
	opI32Add             = 0x6a
	opI32Sub             = 0x6b
	opI32ShrU            = 0x76
	opBulk               = 0xfc // and a second number:
	bulkMemoryInit       = 8
	bulkMemoryCopy       = 10
	bulkMemoryFill       = 11
	bulkTableInit        = 12
	bulkTableCopy        = 14
	bulkTableGrow        = 15
	bulkTableFill        = 17

	blockTypeEmpty = 0x40
	typeI32        = 0x7f
	typeFuncref    = 0x70
	typeExternref  = 0x6f
	typeFunction   = 0x60
)

// instruction skips one instruction and returns its opcode.  An unknown opcode fails the reader, as the length of its
// immediates is unknown.
func (r *reader) instruction() byte {
	opcode := r.byte()
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
		r.byte()
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
	default:
		r.fail(fmt.Errorf("instruction %#x is not known", opcode))
	}
	return opcode
}

func (r *reader) memoryArgument() {
	if align := r.unsigned(); align >= 1<<6 {
		r.fail(fmt.Errorf("memory argument %#x names one of several memories", align))
	}
	r.unsigned()
}

func (r *reader) bulkInstruction() {
	switch code := r.index(); {
	case code <= 7: // saturating truncation
	case code == 9, code == 11, code == 13, code >= 15 && code <= 17:
		r.index()
	case code == 8, code == 10, code == 12, code == 14:
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
	case code > 0x113:
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
