package rdmacore

// #include <stdlib.h>
import "C"

import (
	"golang.org/x/sys/unix"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// Memory is a range of memory that can be registered with devices. Its base never moves, and it stays mapped until the
// last reference is released. Pages are allocated when they are first used.
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

// Backing is where memory comes from.
type Backing int

// What memory can be backed by.
const (
	BackingAnonymous Backing = iota // pages of its own, mmap(2) with MAP_ANONYMOUS
	BackingHuge                     // huge pages of the default size, MAP_HUGETLB
	BackingHeap                     // malloc(3): it begins anywhere and shares its pages with other data
)

var backings = names[Backing]{"backing of memory", []named[Backing]{
	{BackingAnonymous, "anonymous"}, {BackingHuge, "huge"}, {BackingHeap, "heap"},
}}

// String is the name that ParseBacking takes.
func (b Backing) String() string { return backings.name(b) }

// ParseBacking is the reverse of String.
func ParseBacking(name string) (Backing, error) { return backings.parse(name) }

// NewMemoryOn is NewMemory with memory from elsewhere. ENOMEM when there are not enough huge pages. size is rounded up
// to whole pages of the backing; for the heap it is not rounded.
func NewMemoryOn(backing Backing, size int) (*Memory, error) {
	switch backing {
	case BackingAnonymous:
		return NewMemory(size)
	case BackingHuge:
		return newHugeMemory(size)
	case BackingHeap:
		return newHeapMemory(size)
	}
	return nil, fail("mmap", syscall.EINVAL, "no %s", backing)
}

// newHugeMemory maps huge pages.  The kernel reserves them here (no MAP_NORESERVE), or a page that is missing would
// be a SIGBUS at its first touch.
func newHugeMemory(size int) (*Memory, error) {
	pages, err := HugePages()
	if err != nil {
		return nil, err
	}
	if size <= 0 || size > int(^uint(0)>>1)-pages.Size {
		return nil, fail("mmap", syscall.EINVAL, "%d bytes of memory", size)
	}
	size = (size + pages.Size - 1) / pages.Size * pages.Size
	bytes, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS|unix.MAP_HUGETLB)
	if err != nil {
		return nil, fail("mmap", err.(syscall.Errno), "%d huge pages of %d bytes, and %d are free; see "+
			"/proc/sys/vm/nr_hugepages",
			size/pages.Size, pages.Size, pages.Free)
	}
	return newMemory(bytes, func(bytes []byte) { syscall.Munmap(bytes) }), nil
}

func newHeapMemory(size int) (*Memory, error) {
	if size <= 0 {
		return nil, fail("malloc", syscall.EINVAL, "%d bytes of memory", size)
	}
	pointer := C.calloc(1, C.size_t(size))
	if pointer == nil {
		return nil, fail("malloc", syscall.ENOMEM, "%d bytes", size)
	}
	return newMemory(unsafe.Slice((*byte)(pointer), size), func([]byte) { C.free(pointer) }), nil
}

// HugePageCount is how many huge pages of the default size there are, and how large one is.
type HugePageCount struct{ Size, Free int }

// HugePages reads them from /proc/meminfo (proc_meminfo(5)); ENOSYS where the kernel has none.
func HugePages() (HugePageCount, error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return HugePageCount{}, fail("mmap", syscall.ENOSYS, "huge pages: %v", err)
	}
	return hugePagesIn(string(text))
}

// hugePagesIn reads the text of /proc/meminfo.  Pages that are reserved are promised to others already.
func hugePagesIn(meminfo string) (HugePageCount, error) {
	numbers := make(map[string]int)
	for line := range strings.Lines(meminfo) {
		name, rest, _ := strings.Cut(line, ":")
		words := strings.Fields(rest)
		if len(words) == 0 {
			continue
		}
		if n, err := strconv.Atoi(words[0]); err == nil {
			numbers[name] = n
		}
	}
	count := HugePageCount{
		Size: numbers["Hugepagesize"] << 10, Free: numbers["HugePages_Free"] - numbers["HugePages_Rsvd"],
	}
	if count.Size == 0 {
		return count, fail("mmap", syscall.ENOSYS, "the kernel has no huge pages")
	}
	return count, nil
}
