package rdmacore

// #include "core.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// Access says what may be done with a memory region (enum ibv_access_flags).  Local reads always may.
type Access uint32

// MR is a registered memory region.
type MR struct {
	c      *C.struct_ibv_mr
	pd     *PD
	memory *Memory
	length int
}

// RegMR registers length bytes of m from offset (ibv_reg_mr(3)) and holds a reference to m until Dereg.
// EFAULT when they do not lie in m, EBADF when m is unmapped, EINVAL for a remote right to write without
// the local one, ENOMEM when the memory cannot be pinned (ulimit -l).
func (pd *PD) RegMR(m *Memory, offset, length int, access Access) (*MR, error) {
	const op = "ibv_reg_mr"
	if pd == nil || pd.c == nil {
		return nil, closed(op, "PD")
	}
	if !m.retain() {
		return nil, closed(op, "memory")
	}
	mr, err := pd.register(m, offset, length, access)
	if err != nil {
		m.Release()
		return nil, err
	}
	return mr, nil
}

func (pd *PD) register(m *Memory, offset, length int, access Access) (*MR, error) {
	const op = "ibv_reg_mr"
	if offset < 0 || length < 0 || offset > m.Size() || length > m.Size()-offset {
		return nil, fail(op, syscall.EFAULT, "%d bytes from offset %d do not lie in memory of %d bytes",
			length, offset, m.Size())
	}
	if access&(AccessRemoteWrite|AccessRemoteAtomic) != 0 && access&AccessLocalWrite == 0 {
		return nil, fail(op, syscall.EINVAL, "%s needs LOCAL_WRITE too", access)
	}
	var c *C.struct_ibv_mr
	address := unsafe.Add(unsafe.Pointer(unsafe.SliceData(m.Bytes())), offset)
	result := C.core_reg_mr(pd.device.provider.c, pd.c, address, C.size_t(length), C.int(access), &c)
	if err := check(op, int(result)); err != nil {
		failure := err.(*Error)
		if failure.Errno == syscall.ENOMEM {
			failure.Why = "the memory could not be pinned; raise ulimit -l"
		}
		return nil, failure
	}
	return &MR{c: c, pd: pd, memory: m, length: length}, nil
}

// Address is that of the first byte, as remote operations name it; 0 after Dereg.
func (mr *MR) Address() uint64 {
	if mr == nil || mr.c == nil {
		return 0
	}
	return uint64(uintptr(mr.c.addr))
}

// Length is that given to RegMR, in bytes.
func (mr *MR) Length() int {
	if mr == nil {
		return 0
	}
	return mr.length
}

// LKey is the key for local use; 0 after Dereg.
func (mr *MR) LKey() uint32 {
	if mr == nil || mr.c == nil {
		return 0
	}
	return uint32(mr.c.lkey)
}

// RKey is the key for remote use; 0 after Dereg.
func (mr *MR) RKey() uint32 {
	if mr == nil || mr.c == nil {
		return 0
	}
	return uint32(mr.c.rkey)
}

// Dereg ends the registration (ibv_dereg_mr(3)) and drops the reference to the memory.
func (mr *MR) Dereg() error {
	const op = "ibv_dereg_mr"
	if mr == nil || mr.c == nil {
		return closed(op, "MR")
	}
	if err := check(op, int(C.core_dereg_mr(mr.pd.device.provider.c, mr.c))); err != nil {
		return err
	}
	mr.c = nil
	mr.memory.Release()
	return nil
}
