package hostfuncs

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Guest memory may be written while a host function runs: by the guest's peers, or by its other threads where memory is
// shared.  What is checked is therefore read once, into a variable of the host's, and that is used.

// Pointer is an offset into the guest's linear memory; 0 is null.
type Pointer uint32

// fault is what is wrong with a pointer that a guest gave, 0 for nothing.
type fault uint32

const (
	faultOutside    fault = 1 + iota // it does not lie in the guest's memory
	faultTooLong                     // a text that is longer than any
	faultSize                        // its struct_size is no size
	faultUnknown                     // a newer form sets a field that this host lacks
	faultMisaligned                  // plus the alignment that is wanted
)

func (f fault) errno() syscall.Errno {
	switch f {
	case 0:
		return 0
	case faultOutside:
		return syscall.EFAULT
	case faultTooLong:
		return syscall.EMSGSIZE
	case faultUnknown:
		return syscall.E2BIG
	}
	return syscall.EINVAL
}

func (f fault) String() string {
	switch f {
	case faultOutside:
		return "does not lie in the guest's memory"
	case faultTooLong:
		return fmt.Sprintf("is longer than %d bytes", maxText)
	case faultSize:
		return fmt.Sprintf("has a struct_size that is not a size: a multiple of 8, from 8 to %d", maxStructSize)
	case faultUnknown:
		return "sets fields that this host does not know"
	}
	return fmt.Sprintf("is not aligned to %d bytes", f-faultMisaligned)
}

// aligned checks the alignment of a T there. It is the one that compilers of guests use, the largest of its fields
// (the C ABI of wasm32). It is 4 where they have at most 32 bits.
func aligned[T any](at Pointer) fault {
	var one T
	if alignment := Pointer(unsafe.Alignof(one)); at%alignment != 0 {
		return faultMisaligned + fault(alignment)
	}
	return 0
}

// bytes is a range of guest memory.  It is valid until the guest runs again, for memory may grow; the
// provider, and so the peer, may write into it at any time.
func (i *Instance) bytes(at Pointer, length uint32) ([]byte, fault) {
	end := uint64(at) + uint64(length)
	if end > uint64(len(i.memory)) || at == 0 && length != 0 {
		return nil, faultOutside
	}
	return i.memory[at:end:end], 0
}

// view is count structs in guest memory, used where they lie.
func view[T any](i *Instance, at Pointer, count uint32) ([]T, fault) {
	var one T
	end := uint64(at) + uint64(count)*uint64(unsafe.Sizeof(one))
	if end > uint64(len(i.memory)) || at == 0 && count != 0 {
		return nil, faultOutside
	}
	if wrong := aligned[T](at); wrong != 0 {
		return nil, wrong
	}
	if count == 0 {
		return nil, 0
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&i.memory[at])), count), 0
}

// read copies in a struct that does not grow.
func read[T any](i *Instance, at Pointer) (value T, wrong fault) {
	given, wrong := view[T](i, at, 1)
	if wrong != 0 {
		return value, wrong
	}
	return given[0], 0
}

// maxText bounds the length of a text, and so what a guest makes the host copy.
const maxText = 1 << 16

// text is a string that the guest gives.
func (i *Instance) text(at Pointer, length uint32) (string, fault) {
	data, wrong := i.bytes(at, length)
	if wrong == 0 && length > maxText {
		wrong = faultTooLong
	}
	if wrong != 0 {
		return "", wrong
	}
	return string(data), 0
}

// readSized copies in a struct that the guest may have in an older, shorter form, or in a newer one. The fields that
// the guest lacks are 0. Those that the host lacks must be 0 (-E2BIG).
func readSized[T any](i *Instance, at Pointer) (value T, wrong fault) {
	form, wrong := given[T](i, at)
	if wrong != 0 {
		return value, wrong
	}
	known := unsafe.Slice((*byte)(unsafe.Pointer(&value)), unsafe.Sizeof(value))
	for _, b := range form[min(len(known), len(form)):] {
		if b != 0 {
			return value, faultUnknown
		}
	}
	copy(known, form)
	return value, 0
}

// writeSized copies a struct out, as much of it as the guest's form has.  The guest's struct_size stays.
func writeSized[T any](i *Instance, at Pointer, value *T) fault {
	form, wrong := given[T](i, at)
	if wrong != 0 {
		return wrong
	}
	known := unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
	copied := copy(form[4:], known[4:])
	clear(form[4+copied:])
	return 0
}

// roomFor reports whether writeSized could write a T now: an event is taken only when there is a place to put it.
func roomFor[T any](i *Instance, at Pointer) fault {
	_, wrong := given[T](i, at)
	return wrong
}

// maxStructSize bounds struct_size: nothing in the ABI comes near, and garbage is found early.
const maxStructSize = 1 << 16

// given is the guest's form of a T, of the length in its struct_size, which is read only once.
func given[T any](i *Instance, at Pointer) ([]byte, fault) {
	if wrong := aligned[T](at); wrong != 0 {
		return nil, wrong
	}
	first, wrong := view[uint32](i, at, 1)
	if wrong != 0 {
		return nil, wrong
	}
	size := atomic.LoadUint32(&first[0])
	if size < 8 || size%8 != 0 || size > maxStructSize {
		return nil, faultSize
	}
	return i.bytes(at, size)
}
