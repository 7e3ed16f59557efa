package rdmacore

import (
	"errors"
	"os"
	"sync"
	"syscall"
	"testing"
	"unsafe"
)

func TestMemorySize(t *testing.T) {
	page := os.Getpagesize()
	for given, want := range map[int]int{1: page, page: page, page + 1: 2 * page} {
		m, err := NewMemory(given)
		must(t, err)
		if m.Size() != want || len(m.Bytes()) != want || m.Base()%uintptr(page) != 0 {
			t.Errorf("%d bytes: size %d, base %#x", given, m.Size(), m.Base())
		}
		if m.Base() != uintptr(unsafe.Pointer(&m.Bytes()[0])) {
			t.Error("the base is not where the bytes are")
		}
		m.Bytes()[want-1] = 1
		m.Release()
	}
	for _, size := range []int{0, -1, int(^uint(0) >> 1)} {
		if _, err := NewMemory(size); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
	if _, err := NewMemory(1 << 52); !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("more than the address space: %v", err)
	}
}

func TestMemoryReferences(t *testing.T) {
	m, err := NewMemory(1)
	must(t, err)
	m.Retain()
	m.Release()
	if m.Bytes() == nil {
		t.Fatal("unmapped with a reference left")
	}
	m.Release()
	if m.Bytes() != nil || m.Size() != 0 || m.Base() != 0 {
		t.Error("still there without a reference")
	}
	m.Release()
	m.Retain()
	if m.retain() || m.Bytes() != nil {
		t.Error("a reference brought unmapped memory back")
	}
	var none *Memory
	none.Retain()
	none.Release()
	if none.Bytes() != nil || none.Size() != 0 || none.Base() != 0 {
		t.Error("nil memory is something")
	}
}

func TestMemoryConcurrent(t *testing.T) {
	m, err := NewMemory(1)
	must(t, err)
	var all sync.WaitGroup
	for range 8 {
		m.Retain()
		all.Add(1)
		go func() {
			defer all.Done()
			for range 1000 {
				m.Retain()
				_ = m.Bytes()[0]
				m.Release()
			}
			m.Release()
		}()
	}
	m.Release()
	all.Wait()
	if m.Bytes() != nil {
		t.Error("still mapped after the last release")
	}
}
