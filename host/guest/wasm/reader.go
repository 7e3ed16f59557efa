package wasm

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

var errTruncated = errors.New("it ends in the middle of something")

// reader walks a WebAssembly binary.  The first error sticks, so that callers check once at the end
// of a unit instead of after each field.
type reader struct {
	data []byte
	pos  int
	err  error
	at   int // where the error is
}

// fail notes an error at the place that is read next.
func (r *reader) fail(err error) { r.failAt(r.pos, err) }

// failAt notes an error of what begins at a place that was read before.
func (r *reader) failAt(at int, err error) {
	if r.err == nil {
		r.err, r.at = err, at
	}
	r.pos = len(r.data)
}

// failure is the error with its place in the file, as tools that print a module write it.
func (r *reader) failure() error { return fmt.Errorf("at byte %#x: %w", r.at, r.err) }

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

// sub is a reader of the next bytes, which are passed over.  It counts its places as r does.
func (r *reader) sub(size uint32) *reader {
	at := r.pos
	r.bytes(uint64(size))
	if r.err != nil {
		return &reader{err: r.err, at: r.at}
	}
	return &reader{data: r.data[:r.pos], pos: at}
}

// join takes over the error of a reader that sub gave, and refuses what that one has not read.
func (r *reader) join(sub *reader, what string) {
	if sub.more() {
		sub.fail(errors.New("it is longer than what it holds"))
	}
	if sub.err != nil {
		r.failAt(sub.at, fmt.Errorf("%s: %w", what, sub.err))
	}
}

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
	r.fail(errNumber)
	return 0
}

var errNumber = errors.New("a number is longer than its type")

// index reads an unsigned LEB128 number of 32 bits, of at most 5 bytes (WebAssembly Core Specification 2.0, section
// 5.2.2).
func (r *reader) index() uint32 {
	if r.pos < len(r.data) && r.data[r.pos] < 0x80 { // most are
		r.pos++
		return uint32(r.data[r.pos-1])
	}
	at := r.pos
	var value uint32
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		if shift == 28 && b > 0x0f {
			break
		}
		value |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return value
		}
	}
	r.failAt(at, errNumber)
	return 0
}

// integer reads a signed LEB128 number of so many bits. It has at most as many bytes as these need, and the excess
// bits of the last byte are the sign (section 5.2.2).
func (r *reader) integer(bits int) int64 {
	at := r.pos
	var value int64
	for shift := 0; shift < bits; shift += 7 {
		b := r.byte()
		value |= int64(b&0x7f) << shift
		if left := bits - shift; left < 7 {
			sign := int8(b<<1) >> left // all its bits are the same
			if b >= 0x80 || sign != 0 && sign != -1 {
				break
			}
		}
		if b < 0x80 {
			if shift += 7; shift < 64 && b&0x40 != 0 {
				value |= -1 << shift
			}
			return value
		}
	}
	r.failAt(at, errNumber)
	return 0
}

// leb skips a LEB128 number of either signedness.
func (r *reader) leb() {
	for n := 0; n < 10; n++ {
		if r.byte() < 0x80 {
			return
		}
	}
	r.fail(errNumber)
}

// name reads a name, which has to be UTF-8 (section 5.2.4).
func (r *reader) name() string {
	at := r.pos
	text := r.bytes(uint64(r.index()))
	if !utf8.Valid(text) {
		r.failAt(at, errors.New("a name is not UTF-8"))
		return ""
	}
	return string(text)
}

// vector reads a count, and then calls item that many times.
func (r *reader) vector(item func()) uint32 {
	count := r.index()
	for i := uint32(0); i < count && r.err == nil; i++ {
		item()
	}
	return count
}

func appendUnsigned(out []byte, value uint64) []byte {
	for value >= 0x80 {
		out = append(out, byte(value)|0x80)
		value >>= 7
	}
	return append(out, byte(value))
}

func appendSigned(out []byte, value int64) []byte {
	for {
		b := byte(value & 0x7f)
		value >>= 7
		if value == 0 && b&0x40 == 0 || value == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func appendName(out []byte, name string) []byte {
	return append(appendUnsigned(out, uint64(len(name))), name...)
}
