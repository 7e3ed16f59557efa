package lab

import (
	"rdmarun/rdmacore"
)

// Buffer is registered memory of a role.
type Buffer struct {
	Name   string
	memory *rdmacore.Memory
	mr     *rdmacore.MR
	size   int
}

func (r *Role) newBuffer(config BufferConfig) (*Buffer, error) {
	memory, err := rdmacore.NewMemory(config.Size)
	if err != nil {
		return nil, err
	}
	mr, err := r.pd.RegMR(memory, 0, config.Size, config.Access)
	if err != nil {
		memory.Release()
		return nil, err
	}
	buffer := &Buffer{Name: config.Name, memory: memory, mr: mr, size: config.Size}
	r.lab.later(r.Name+"'s buffer "+config.Name, func() error {
		memory.Release() // the registration holds the memory until it is gone itself
		return mr.Dereg()
	})
	return buffer, nil
}

// Bytes is the buffer's memory.  A device may write to it at any time.
func (b *Buffer) Bytes() []byte { return b.memory.Bytes()[:b.size] }

// Size is the number of bytes.
func (b *Buffer) Size() int { return b.size }

// MR is the registration.
func (b *Buffer) MR() *rdmacore.MR { return b.mr }

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

// View is what expressions get for the buffer.
func (b *Buffer) View() BufferView {
	return BufferView{
		Addr: int(b.mr.Address()),
		RKey: int(b.mr.RKey()),
		LKey: int(b.mr.LKey()),
		Size: b.size,
	}
}
