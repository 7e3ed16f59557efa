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
	at   int      // where the error is
	uses Features // what the instructions that were read are of
}

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err, r.at = err, r.pos
	}
	r.pos = len(r.data)
}

// failure is the error with its place.
func (r *reader) failure() error { return fmt.Errorf("at byte %d: %w", r.at, r.err) }

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
	switch {
	case flags&^7 == 0 && flags&4 != 0:
		r.fail(unsupported(memory64))
		return 0, 0, false
	case flags > 3:
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
	opI32Mul             = 0x6c
	opI32ShrU            = 0x76
	opI64Add             = 0x7c
	opI64Sub             = 0x7d
	opI64Mul             = 0x7e
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
	typeV128       = 0x7b
	typeFuncref    = 0x70
	typeExternref  = 0x6f
	typeFunction   = 0x60
)
