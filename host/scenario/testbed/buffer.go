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
	zero    uint64          // what requests name the buffer's first byte by, whether it is registered or not
	rights  rdmacore.Access // the same
	size    int
	access  rdmacore.Access
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
	if err := buffer.Register(config.Access); err != nil {
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

// Register registers the buffer's memory, which must not be registered, in the role's protection domain.
func (b *Buffer) Register(access rdmacore.Access) error { return b.RegisterIn(b.role.pd, access) }

// RegisterIn is Register in another protection domain.
func (b *Buffer) RegisterIn(pd *rdmacore.PD, access rdmacore.Access) error {
	return b.registered(access, func() (*rdmacore.MR, error) { return pd.RegMR(b.memory, 0, b.size, access) })
}

// RegisterAt is RegisterIn with an address of the scenario's own.
func (b *Buffer) RegisterAt(pd *rdmacore.PD, iova uint64, access rdmacore.Access) error {
	return b.registered(access, func() (*rdmacore.MR, error) { return pd.RegMRIova(b.memory, 0, b.size, iova, access) })
}

func (b *Buffer) registered(access rdmacore.Access, register func() (*rdmacore.MR, error)) error {
	if b.mr != nil {
		return &Failure{What: "buffer " + b.Name + " is registered already", Hint: "dereg comes first"}
	}
	mr, err := register()
	if err != nil {
		return err
	}
	b.mr, b.rights = mr, access
	b.look(0)
	b.release = b.role.deferFree("buffer "+b.Name, mr.Dereg)
	return nil
}

// look takes over what the registration is, which begins at an offset of the buffer.
func (b *Buffer) look(offset int) {
	b.view = viewOf(b.mr)
	b.zero = b.mr.Address() - uint64(offset)
}

// Change is what of a registration changes.
type Change struct {
	Flags          rdmacore.ReregFlags
	PD             *rdmacore.PD
	Offset, Length int // the part of the buffer that is registered then
	Access         rdmacore.Access
}

// Reregister changes the registration while requests may be using it.
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
	b.look(offset)
	return nil
}

// Deregister ends the registration.  Keys and address are remembered: who uses them must be refused.
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

// renew registers what is registered anew: with the role's protection domain as it is now.
func (b *Buffer) renew() error {
	if b.mr == nil {
		return nil
	}
	b.mr = nil // it is freed at the end: windows may still be bound to it
	return b.Register(b.rights)
}

// Bytes is the buffer's memory.  A device may write to it at any time.
func (b *Buffer) Bytes() []byte { return b.memory.Bytes()[:b.size] }

// Address is what requests name a byte of the buffer by.
func (b *Buffer) Address(offset int) uint64 { return b.zero + uint64(offset) }

// Size is the number of bytes.
func (b *Buffer) Size() int { return b.size }

// BufferView is a buffer as expressions see it; its members are named and told of by their tags.
type BufferView struct {
	Addr int `expr:"addr" doc:"address of a buffer"` // of the first byte, as remote operations name it
	RKey int `expr:"rkey" doc:"key for the peer"`
	LKey int `expr:"lkey" doc:"key for own requests"`
	Size int `expr:"size" doc:"its bytes"` // that are registered
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

func viewOf(mr *rdmacore.MR) BufferView {
	return BufferView{Addr: int(mr.Address()), RKey: int(mr.RKey()), LKey: int(mr.LKey()), Size: mr.Length()}
}

// Filling is what is written to a stretch of memory.
type Filling struct {
	Bytes []byte
	// Repeated bytes fill the stretch to its end; others stand once at its beginning.
	Repeated bool
}

// Fits tells whether a stretch of size bytes has room.
func (f Filling) Fits(size int) bool { return f.Repeated || len(f.Bytes) <= size }

// Over is what a stretch of size bytes must hold after Write: all of it for what is repeated, else the bytes alone.
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
