package rdmacore

import (
	"errors"
	"syscall"
	"testing"
)

func TestBackings(t *testing.T) {
	for _, name := range backings.valid() {
		t.Run(name, func(t *testing.T) {
			backing, err := ParseBacking(name)
			if err != nil || backing.String() != name {
				t.Fatal(backing, err)
			}
			if _, err := NewMemoryOn(backing, 0); !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.ENOSYS) {
				t.Errorf("nothing: %v", err)
			}
			pages, noPages := HugePages()
			m, err := NewMemoryOn(backing, 5000)
			if backing == BackingHuge && (noPages != nil || pages.Free == 0) {
				if !errors.Is(err, syscall.ENOMEM) && !errors.Is(err, syscall.ENOSYS) {
					t.Errorf("without huge pages: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for i, b := range m.Bytes()[:5000] {
				if b != 0 {
					t.Fatalf("byte %d is %d", i, b)
				}
			}
			m.Bytes()[4999] = 1
			m.Retain()
			m.Release()
			m.Release()
			if m.Bytes() != nil {
				t.Error("it lives on")
			}
		})
	}
}

func TestHugePagesIn(t *testing.T) {
	count, err := hugePagesIn(
		"MemTotal: 1 kB\nHugePages_Total:      9\nHugePages_Free:       7\nHugePages_Rsvd:       2\n" +
			"Hugepagesize:       2048 kB\n",
	)
	if err != nil || count != (HugePageCount{Size: 2 << 20, Free: 5}) {
		t.Errorf("%+v %v", count, err)
	}
	if _, err := hugePagesIn("MemTotal: 1 kB\n"); !errors.Is(err, syscall.ENOSYS) {
		t.Errorf("a kernel without: %v", err)
	}
}
