package lab

import (
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
	r.later("memory of "+config.Name, func() error {
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
	if b.mr != nil {
		return &Failure{What: "buffer " + b.Name + " is registered already", Hint: "dereg comes first"}
	}
	mr, err := pd.RegMR(b.memory, 0, b.size, access)
	if err != nil {
		return err
	}
	b.mr, b.view, b.rights = mr, viewOf(mr, b.size), access
	b.release = b.role.later("buffer "+b.Name, mr.Dereg)
	return nil
}

// Deregister ends the registration.  Keys and address are remembered: who uses them must be refused.
func (b *Buffer) Deregister() error {
	if b.mr == nil {
		return &Failure{What: "buffer " + b.Name + " is not registered"}
	}
	if err := b.release.now(); err != nil {
		return err
	}
	b.mr = nil
	return nil
}

// reregister registers what is registered anew: with the role's protection domain as it is now.
func (b *Buffer) reregister() error {
	if b.mr == nil {
		return nil
	}
	b.mr = nil // it is freed at the end: windows may still be bound to it
	return b.Register(b.rights)
}

// Bytes is the buffer's memory.  A device may write to it at any time.
func (b *Buffer) Bytes() []byte { return b.memory.Bytes()[:b.size] }

// Size is the number of bytes.
func (b *Buffer) Size() int { return b.size }

// BufferView is a buffer as expressions see it.
type BufferView struct {
	Addr int `expr:"addr"` // address of the first byte, as remote operations name it
	RKey int `expr:"rkey"`
	LKey int `expr:"lkey"`
	Size int `expr:"size"` // bytes
}

// Record is the view as a record.
func (v BufferView) Record() map[string]any {
	return map[string]any{"addr": v.Addr, "rkey": v.RKey, "lkey": v.LKey, "size": v.Size}
}

// View is what expressions and work requests get for the buffer.
func (b *Buffer) View() BufferView { return b.view }

func viewOf(mr *rdmacore.MR, size int) BufferView {
	return BufferView{Addr: int(mr.Address()), RKey: int(mr.RKey()), LKey: int(mr.LKey()), Size: size}
}
