package testbed

import (
	"reflect"
	"syscall"

	"rdmarun/rdmacore"
)

// Buffer is registered memory of a role.
type Buffer struct {
	Name    string
	role    *Role
	memory  *rdmacore.Memory
	mr      *rdmacore.MR // nil while it is not registered
	release *free
	view    BufferView      // of the last registration
	zero    uint64          // the address of the buffer's first byte in requests, whether it is registered or not
	rights  rdmacore.Access // of the last registration
	size    int
	access  rdmacore.Access // in the scenario
}

func (r *Role) newBuffer(config BufferConfig) (*Buffer, error) {
	memory, err := rdmacore.NewMemoryOn(config.Backing, config.Size)
	if err != nil {
		return nil, err
	}
	buffer := &Buffer{Name: config.Name, role: r, memory: memory, size: config.Size, access: config.Access}
	r.deferFree("memory of "+config.Name, func() error {
		memory.Release() // a registration holds the memory until it is gone itself
		return nil
	})
	config.Fill.Write(buffer.Bytes())
	if err := buffer.RegisterIn(r.pd, config.Access); err != nil {
		return nil, err
	}
	return buffer, nil
}

// Owner is the name of the buffer's role.
func (b *Buffer) Owner() string { return b.role.Name }

// Access are the rights that the scenario gives the buffer.
func (b *Buffer) Access() rdmacore.Access { return b.access }

// Region is the registration; nil while there is none.
func (b *Buffer) Region() *rdmacore.MR { return b.mr }

// RegisterIn registers the buffer's memory, which must not be registered, in a protection domain.
func (b *Buffer) RegisterIn(pd *rdmacore.PD, access rdmacore.Access) error {
	return b.register(access, func() (*rdmacore.MR, error) { return pd.RegMR(b.memory, 0, b.size, access) })
}

// RegisterAt is RegisterIn with an address that the scenario chooses.
func (b *Buffer) RegisterAt(pd *rdmacore.PD, iova uint64, access rdmacore.Access) error {
	return b.register(access, func() (*rdmacore.MR, error) { return pd.RegMRIova(b.memory, 0, b.size, iova, access) })
}

func (b *Buffer) register(access rdmacore.Access, register func() (*rdmacore.MR, error)) error {
	if b.mr != nil {
		return &Failure{What: "buffer " + b.Name + " is registered already", Hint: "dereg comes first"}
	}
	mr, err := register()
	if err != nil {
		return err
	}
	b.mr, b.rights = mr, access
	b.update(0)
	b.release = b.role.deferFree("buffer "+b.Name, mr.Dereg)
	return nil
}

// update notes the address and the keys of the registration, which begins at an offset of the buffer.
func (b *Buffer) update(offset int) {
	b.view = BufferView{Addr: int(b.mr.Address()), RKey: int(b.mr.RKey()), LKey: int(b.mr.LKey()), Size: b.mr.Length()}
	b.zero = b.mr.Address() - uint64(offset)
}

// Change is what of a registration changes.
type Change struct {
	Flags          rdmacore.ReregFlags
	PD             *rdmacore.PD
	Offset, Length int // the part of the buffer that is registered then
	Access         rdmacore.Access
}

// Reregister changes the registration, also while requests may be using it.
func (b *Buffer) Reregister(change Change) error {
	if b.mr == nil {
		return &Failure{What: "buffer " + b.Name + " is not registered", Hint: "reg registers it", Errno: syscall.EBADF}
	}
	offset := int(uint64(b.view.Addr) - b.zero)
	if err := b.mr.Rereg(change.Flags, change.PD, b.memory, change.Offset, change.Length, change.Access); err != nil {
		return err
	}
	if change.Flags&rdmacore.ReregTranslation != 0 {
		offset = change.Offset
	}
	if change.Flags&rdmacore.ReregAccess != 0 {
		b.rights = change.Access
	}
	if change.Flags&rdmacore.ReregPD != 0 {
		b.role.testbed.freeFirst(b.release)
	}
	b.update(offset)
	return nil
}

// Deregister ends the registration.  Keys and address are remembered, for requests that must be refused.
func (b *Buffer) Deregister() error {
	if b.mr == nil {
		return &Failure{What: "buffer " + b.Name + " is not registered"}
	}
	if err := b.release.freeNow(); err != nil {
		return err
	}
	b.mr = nil
	return nil
}

// renew registers a registered buffer again, in the protection domain that the role has now.
func (b *Buffer) renew() error {
	if b.mr == nil {
		return nil
	}
	b.mr = nil // the old one is freed at the end: windows may still be bound to it
	return b.RegisterIn(b.role.pd, b.rights)
}

// Bytes is the buffer's memory.  A device may write to it at any time.
func (b *Buffer) Bytes() []byte { return b.memory.Bytes()[:b.size] }

// Address is what requests name a byte of the buffer by.
func (b *Buffer) Address(offset int) uint64 { return b.zero + uint64(offset) }

// Size is the number of bytes.
func (b *Buffer) Size() int { return b.size }

// BufferView is a buffer as expressions see it; the tags name and document its members.
type BufferView struct {
	Addr int `expr:"addr" doc:"address of a buffer"` // of the first byte, as remote operations name it
	RKey int `expr:"rkey" doc:"key for the peer"`
	LKey int `expr:"lkey" doc:"key for own requests"`
	Size int `expr:"size" doc:"its bytes"` // as far as they are registered
}

// BufferMembers are the names of a BufferView's members, each with what it is.
func BufferMembers() (names, docs []string) {
	for _, field := range reflect.VisibleFields(reflect.TypeFor[BufferView]()) {
		names, docs = append(names, field.Tag.Get("expr")), append(docs, field.Tag.Get("doc"))
	}
	return names, docs
}

// Record is the view as a record.
func (v BufferView) Record() map[string]any {
	names, _ := BufferMembers()
	record := make(map[string]any, len(names))
	for i, name := range names {
		record[name] = reflect.ValueOf(v).Field(i).Interface()
	}
	return record
}

// View is what expressions and work requests get for the buffer.
func (b *Buffer) View() BufferView { return b.view }

// Filling is what is written to a stretch of memory.
type Filling struct {
	Bytes []byte
	// Repeated bytes fill the stretch to its end; others are written once, at its beginning.
	Repeated bool
}

// Fits reports whether a stretch of size bytes has room.
func (f Filling) Fits(size int) bool { return f.Repeated || len(f.Bytes) <= size }

// Over is what a stretch of size bytes must hold after Write: all of it for bytes that are repeated, else those alone.
func (f Filling) Over(size int) []byte {
	if !f.Repeated || len(f.Bytes) == 0 {
		return f.Bytes
	}
	whole := make([]byte, size)
	f.Write(whole)
	return whole
}

// Write fills a stretch, as far as it reaches.
func (f Filling) Write(room []byte) {
	n := copy(room, f.Bytes)
	if f.Repeated && n > 0 {
		for n < len(room) {
			n += copy(room[n:], room[:n])
		}
	}
}
