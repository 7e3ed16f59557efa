package hostfuncs

import (
	"encoding/binary"
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

func TestPointers(t *testing.T) {
	const size = 4096
	i := newInstance(t, size, Config{})
	for name, c := range map[string]struct {
		at, length uint32
		want       syscall.Errno
	}{
		"all but null":     {1, size - 1, 0},
		"last byte":        {size - 1, 1, 0},
		"nothing at end":   {size, 0, 0},
		"null":             {0, 1, syscall.EFAULT},
		"null of nothing":  {0, 0, 0},
		"one past the end": {size - 1, 2, syscall.EFAULT},
		"at the end":       {size, 1, syscall.EFAULT},
		"far outside":      {0xffffffff, 1, syscall.EFAULT},
		"wraps around":     {0xfffffff0, 0x20, syscall.EFAULT},
		"longest":          {8, 0xffffffff, syscall.EFAULT},
	} {
		if _, wrong := i.bytes(Pointer(c.at), c.length); wrong.errno() != c.want {
			t.Errorf("%s: %v, not %v", name, wrong, c.want)
		}
	}
}

func TestViews(t *testing.T) {
	const size = 4096
	i := newInstance(t, size, Config{})
	for name, c := range map[string]struct {
		at, count uint32
		want      syscall.Errno
	}{
		"as many as fit":                     {48, size/48 - 1, 0},
		"one too many":                       {48, size / 48, syscall.EFAULT},
		"none":                               {0, 0, 0},
		"null":                               {0, 1, syscall.EFAULT},
		"not aligned":                        {52, 1, syscall.EINVAL},
		"count times size overflows 32 bits": {48, 0xffffffff/48 + 2, syscall.EFAULT},
		"most":                               {48, 0xffffffff, syscall.EFAULT},
	} {
		wcs, wrong := view[rdmacore.WC](i, Pointer(c.at), c.count)
		if wrong.errno() != c.want || wrong == 0 && len(wcs) != int(c.count) {
			t.Errorf("%s: %v with %d, not %v", name, wrong, len(wcs), c.want)
		}
	}
}

// Structs lie where compilers put them: those of 32-bit fields at 4 bytes, text anywhere.  The message names one cause.
func TestAlignment(t *testing.T) {
	i := newInstance(t, 4096, Config{})
	at := func(at Pointer) error {
		binary.LittleEndian.PutUint32(i.memory[at:], 24)
		if i.badPointer("attr", roomFor[fourNumbers](i, at)) == 0 {
			return nil
		}
		return i.lastError
	}
	for _, place := range []Pointer{8, 12, 16, 20} {
		if wrong := roomFor[fourNumbers](i, place); wrong != faultSize {
			t.Errorf("at %d: %s", place, wrong)
		}
		if _, wrong := view[Address](i, place, 1); wrong != 0 {
			t.Errorf("an address at %d: %s", place, wrong)
		}
	}
	for place, want := range map[Pointer]string{
		10: "invalid argument: attr is not aligned to 4 bytes",
		13: "invalid argument: attr is not aligned to 4 bytes",
	} {
		if err := at(place); err == nil || err.Error() != want {
			t.Errorf("at %d: %v", place, err)
		}
	}
	if _, wrong := view[rdmacore.WC](i, 12, 1); wrong.String() != "is not aligned to 8 bytes" {
		t.Errorf("a completion at 12 %s", wrong)
	}
	i.badPointer("attr", roomFor[fourNumbers](i, 32))
	const want = "invalid argument: attr has a struct_size that is not a size: a multiple of 8, from 8 to 65536"
	if i.lastError.Error() != want {
		t.Error(i.lastError)
	}
	if _, wrong := i.text(8, maxText+1); wrong != faultOutside {
		t.Errorf("a text beyond memory %s", wrong)
	}
}

// A guest may know an older or a newer form of a struct.
func TestSizedStructs(t *testing.T) {
	i := newInstance(t, 4096, Config{})
	const at, known = 64, uint32(unsafe.Sizeof(ConnParam{}))
	for name, c := range map[string]struct {
		size  uint32
		extra byte // the first byte beyond the host's own form
		want  syscall.Errno
	}{
		"as the host knows it":    {known, 1, 0},
		"older":                   {16, 0, 0},
		"newer, extra fields 0":   {known + 8, 0, 0},
		"newer, extra fields set": {known + 8, 1, syscall.E2BIG},
		"no size":                 {0, 0, syscall.EINVAL},
		"less than any":           {4, 0, syscall.EINVAL},
		"odd":                     {known + 4, 0, syscall.EINVAL},
		"garbage":                 {0xfffffff8, 0, syscall.EINVAL},
		"beyond memory":           {4096, 0, syscall.EFAULT},
	} {
		clear(i.memory)
		binary.LittleEndian.PutUint32(i.memory[at:], c.size)
		i.memory[at+4] = 9   // responder_resources
		i.memory[at+16] = 42 // private_data
		i.memory[at+known] = c.extra
		param, wrong := readSized[ConnParam](i, at)
		if wrong.errno() != c.want {
			t.Errorf("%s: %v, not %v", name, wrong, c.want)
			continue
		}
		if wrong != 0 {
			continue
		}
		if param.ResponderResources != 9 {
			t.Errorf("%s: responder_resources is %d", name, param.ResponderResources)
		}
		if older := c.size <= 16; (param.PrivateData[0] == 42) == older {
			t.Errorf("%s: private_data begins with %d", name, param.PrivateData[0])
		}
	}
}

func TestWriteSizedStructs(t *testing.T) {
	i := newInstance(t, 4096, Config{})
	const at, known = 64, uint32(unsafe.Sizeof(fourNumbers{}))
	for _, size := range []uint32{8, known, known + 16} {
		for n := range i.memory {
			i.memory[n] = 0xee
		}
		binary.LittleEndian.PutUint32(i.memory[at:], size)
		value := fourNumbers{StructSize: known, A: 1, B: 2, C: 3}
		if wrong := writeSized(i, at, &value); wrong != 0 {
			t.Fatal(wrong)
		}
		if got := binary.LittleEndian.Uint32(i.memory[at:]); got != size {
			t.Errorf("size %d: struct_size has become %d", size, got)
		}
		for n := uint32(4); n < size; n++ {
			want := byte(0)
			if n < known && n%4 == 0 {
				want = byte(n / 4)
			}
			if got := i.memory[at+n]; got != want {
				t.Errorf("size %d: byte %d is %#x, not %#x", size, n, got, want)
			}
		}
		if i.memory[at+size] != 0xee {
			t.Errorf("size %d: written beyond the guest's form", size)
		}
	}
}

// fourNumbers is a struct that may grow.
type fourNumbers struct{ StructSize, A, B, C uint32 }
