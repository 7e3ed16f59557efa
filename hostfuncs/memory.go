package hostfuncs

import (
	"syscall"
	"unsafe"
)

// Pointer is an offset into the guest's linear memory; 0 is null.
type Pointer uint32

// structAlignment is that of every struct of the ABI.
const structAlignment = 8

// bytes is a range of guest memory.  It is valid until the guest runs again, for memory may grow; the
// provider, and so the peer, may write into it at any time.
func (i *Instance) bytes(at Pointer, length uint32) ([]byte, syscall.Errno) {
	end := uint64(at) + uint64(length)
	if end > uint64(len(i.memory)) || at == 0 && length != 0 {
		return nil, syscall.EFAULT
	}
	return i.memory[at:end:end], 0
}

// view is count structs in guest memory, used where they lie.
func view[T any](i *Instance, at Pointer, count uint32) ([]T, syscall.Errno) {
	var one T
	end := uint64(at) + uint64(count)*uint64(unsafe.Sizeof(one))
	if end > uint64(len(i.memory)) || at == 0 && count != 0 {
		return nil, syscall.EFAULT
	}
	if at%structAlignment != 0 {
		return nil, syscall.EINVAL
	}
	if count == 0 {
		return nil, 0
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&i.memory[at])), count), 0
}

// maxText is how long a string may be that the guest gives: a name, or a line of its log.
const maxText = 1 << 16

// text is a string that the guest gives.
func (i *Instance) text(at Pointer, length uint32) (string, syscall.Errno) {
	data, errno := i.bytes(at, length)
	if errno == 0 && length > maxText {
		errno, data = syscall.EMSGSIZE, nil
	}
	return string(data), errno
}

// readSized copies in a struct that the guest may know in an older, shorter form, or in a newer one: the
// fields it lacks are 0, and those the host lacks must be (-E2BIG).
func readSized[T any](i *Instance, at Pointer) (T, syscall.Errno) {
	var value T
	size, errno := i.structSize(at)
	if errno != 0 {
		return value, errno
	}
	given, errno := i.bytes(at, size)
	if errno != 0 {
		return value, errno
	}
	known := unsafe.Slice((*byte)(unsafe.Pointer(&value)), unsafe.Sizeof(value))
	for _, b := range given[min(len(known), len(given)):] {
		if b != 0 {
			return value, syscall.E2BIG
		}
	}
	copy(known, given)
	return value, 0
}

// writeSized copies a struct out, as much of it as the guest knows.  The guest's struct_size stays.
func writeSized[T any](i *Instance, at Pointer, value *T) syscall.Errno {
	size, errno := i.structSize(at)
	if errno != 0 {
		return errno
	}
	given, errno := i.bytes(at, size)
	if errno != 0 {
		return errno
	}
	known := unsafe.Slice((*byte)(unsafe.Pointer(value)), unsafe.Sizeof(*value))
	copied := copy(given[4:], known[4:])
	clear(given[4+copied:])
	return 0
}

// roomFor tells whether writeSized could write now: an event is taken only when there is a place to put it.
func (i *Instance) roomFor(at Pointer) syscall.Errno {
	size, errno := i.structSize(at)
	if errno == 0 {
		_, errno = i.bytes(at, size)
	}
	return errno
}

// maxStructSize bounds struct_size: nothing in the ABI comes near, and garbage is found early.
const maxStructSize = 1 << 16

func (i *Instance) structSize(at Pointer) (uint32, syscall.Errno) {
	size, errno := view[uint32](i, at, 1)
	if errno != 0 {
		return 0, errno
	}
	if size[0] < 8 || size[0]%8 != 0 || size[0] > maxStructSize {
		return 0, syscall.EINVAL
	}
	return size[0], 0
}
