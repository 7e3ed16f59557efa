package rdmacore

import (
	"os"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Memory is a stretch of memory that can be registered with devices: its base never moves,
// and it stays mapped until the last reference is released.  Pages take room only when touched.
type Memory struct {
	references atomic.Int64
	bytes      []byte
	free       func(bytes []byte)
}

// newMemory has one reference, held by the caller.
func newMemory(bytes []byte, free func([]byte)) *Memory {
	m := &Memory{bytes: bytes, free: free}
	m.references.Store(1)
	return m
}

// NewMemory maps size bytes, rounded up to whole pages and zero, with one reference held by the caller.
// ENOMEM when the address space or the overcommit policy does not allow it.
func NewMemory(size int) (*Memory, error) {
	page := os.Getpagesize()
	if size <= 0 || size > int(^uint(0)>>1)-page {
		return nil, fail("mmap", syscall.EINVAL, "%d bytes of memory", size)
	}
	size = (size + page - 1) &^ (page - 1)
	bytes, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|syscall.MAP_NORESERVE)
	if err != nil {
		return nil, fail("mmap", err.(syscall.Errno),
			"%d bytes of address space; see ulimit -v and vm.overcommit_memory", size)
	}
	return newMemory(bytes, func(bytes []byte) { syscall.Munmap(bytes) }), nil
}

// Bytes is the whole memory, or nil once it is unmapped.  The slice must not be used without holding a
// reference.
func (m *Memory) Bytes() []byte {
	if !m.alive() {
		return nil
	}
	return m.bytes
}

// Size is the length of Bytes.
func (m *Memory) Size() int { return len(m.Bytes()) }

// Base is the address of the first byte, or 0 once it is unmapped.
func (m *Memory) Base() uintptr {
	return uintptr(unsafe.Pointer(unsafe.SliceData(m.Bytes())))
}

// Retain adds a reference.  The caller must hold one already; on unmapped memory it does nothing.
func (m *Memory) Retain() { m.retain() }

// retain reports whether there was memory to refer to.
func (m *Memory) retain() bool {
	if m == nil {
		return false
	}
	for {
		count := m.references.Load()
		if count <= 0 {
			return false
		}
		if m.references.CompareAndSwap(count, count+1) {
			return true
		}
	}
}

// Release drops a reference and unmaps the memory with the last one.  On unmapped memory it does
// nothing.
func (m *Memory) Release() {
	if m == nil {
		return
	}
	for {
		count := m.references.Load()
		if count <= 0 {
			return
		}
		if !m.references.CompareAndSwap(count, count-1) {
			continue
		}
		if count == 1 {
			m.free(m.bytes)
		}
		return
	}
}

func (m *Memory) alive() bool { return m != nil && m.references.Load() > 0 }
