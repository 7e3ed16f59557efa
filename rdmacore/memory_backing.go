package rdmacore

// #include <stdlib.h>
import "C"

import (
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

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

// NewMemoryOn is NewMemory with memory from elsewhere.  ENOMEM for huge pages of which there are not enough;
// size is rounded up to whole pages of the backing, and of the heap it is as given.
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
		return nil, fail("mmap", err.(syscall.Errno), "%d huge pages of %d bytes, and %d are free; see /proc/sys/vm/nr_hugepages",
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
