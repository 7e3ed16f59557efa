package rdmacore

// #include "core/core.h"
import "C"

import (
	"errors"
	"syscall"
	"unsafe"
)

// PD is a protection domain: a QP reaches only the memory regions of its own.
type PD struct {
	c        *C.struct_ibv_pd
	device   *Device
	borrowed bool // librdmacm's default PD of a device; it goes with the last id on it
}

// AllocPD allocates a protection domain (ibv_alloc_pd(3)).
func (d *Device) AllocPD() (*PD, error) {
	const op = "ibv_alloc_pd"
	if !d.open() {
		return nil, closed(op, "device")
	}
	var c *C.struct_ibv_pd
	if err := check(op, int(C.core_alloc_pd(d.provider.c, d.c, &c))); err != nil {
		return nil, err
	}
	return &PD{c: c, device: d}, nil
}

// Device returns the device that the PD is on.
func (pd *PD) Device() *Device {
	if pd == nil {
		return nil
	}
	return pd.device
}

// Dealloc frees the protection domain (ibv_dealloc_pd(3)).  EBUSY while it has QPs or MRs, EINVAL for
// the default PD of an id, which is not the caller's to free.
func (pd *PD) Dealloc() error {
	const op = "ibv_dealloc_pd"
	if pd == nil || pd.c == nil {
		return closed(op, "PD")
	}
	if pd.borrowed {
		return fail(op, syscall.EINVAL, "this PD belongs to librdmacm and goes with its ids")
	}
	if err := check(op, int(C.core_dealloc_pd(pd.device.provider.c, pd.c))); err != nil {
		return err
	}
	pd.c = nil
	return nil
}

// Access is what may be done with a memory region (enum ibv_access_flags).  Local reads are always allowed.
type Access uint32

// MR is a registered memory region.
type MR struct {
	c       *C.struct_ibv_mr
	pd      *PD
	memory  *Memory
	address uint64 // of its first byte, as work requests name it
	length  int
	access  Access
	spare   *Memory // what a change that failed halfway may have left to the device
}

// RegMR registers length bytes of m from offset (ibv_reg_mr(3)) and holds a reference to m until Dereg. EFAULT when
// they are not in m, EBADF when m is unmapped. EINVAL for a remote right to write without the local one. ENOMEM when
// the memory cannot be pinned (ulimit -l).
func (pd *PD) RegMR(m *Memory, offset, length int, access Access) (*MR, error) {
	return pd.hold("ibv_reg_mr", m, offset, length, access,
		func(address unsafe.Pointer, c **C.struct_ibv_mr) (uint64, C.int) {
			return uint64(uintptr(address)),
				C.core_reg_mr(pd.device.provider.c, pd.c, address, C.size_t(length), C.int(access), c)
		})
}

// RegMRIova is RegMR with an address of the caller's choice, by which work requests of both sides name the first
// byte (ibv_reg_mr_iova(3)).  A device may require that its offset in a page is that of the memory.
func (pd *PD) RegMRIova(m *Memory, offset, length int, iova uint64, access Access) (*MR, error) {
	return pd.registerAt("ibv_reg_mr_iova", m, offset, length, iova, access)
}

// registerAt is RegMRIova, with the name that errors give to the operation.
func (pd *PD) registerAt(op string, m *Memory, offset, length int, iova uint64, access Access) (*MR, error) {
	return pd.hold(op, m, offset, length, access,
		func(address unsafe.Pointer, c **C.struct_ibv_mr) (uint64, C.int) {
			return iova, C.core_reg_mr_iova(pd.device.provider.c, pd.c, address, C.size_t(length),
				C.uint64_t(iova), C.int(access), c)
		})
}

// RegMRAt is RegMR for a guest. Work requests of both sides address the first byte by its offset. So this address does
// not reveal where the memory is in this process. With iWARP it is RegMR, because its regions have no other address.
func (pd *PD) RegMRAt(m *Memory, offset, length int, access Access) (*MR, error) {
	if pd != nil && pd.device.IWARP() {
		return pd.RegMR(m, offset, length, access)
	}
	return pd.registerAt("ibv_reg_mr", m, offset, length, uint64(offset), access)
}

// registration makes a region of memory at an address, and returns the address by which work requests name it.
type registration func(address unsafe.Pointer, c **C.struct_ibv_mr) (named uint64, result C.int)

// hold registers memory and refers to it as long as the region is there.
func (pd *PD) hold(op string, m *Memory, offset, length int, access Access, register registration) (*MR, error) {
	if pd == nil || pd.c == nil {
		return nil, closed(op, "PD")
	}
	address, err := m.part(op, offset, length)
	if err != nil {
		return nil, err
	}
	mr := &MR{pd: pd, memory: m, length: length, access: access}
	if err = checkRights(op, access); err == nil {
		var c *C.struct_ibv_mr
		named, result := register(address, &c)
		mr.c, mr.address = c, named
		err = pinned(check(op, int(result)))
	}
	if err != nil {
		m.Release()
		return nil, err
	}
	return mr, nil
}

// part is the address of a part of the memory, to which it adds a reference.
func (m *Memory) part(op string, offset, length int) (unsafe.Pointer, error) {
	if !m.retain() {
		return nil, closed(op, "memory")
	}
	if offset < 0 || length < 0 || offset > m.Size() || length > m.Size()-offset {
		err := fail(op, syscall.EFAULT, "%d bytes from offset %d do not lie in memory of %d bytes",
			length, offset, m.Size())
		m.Release()
		return nil, err
	}
	return unsafe.Add(unsafe.Pointer(unsafe.SliceData(m.Bytes())), offset), nil
}

func checkRights(op string, access Access) error {
	if access&(AccessRemoteWrite|AccessRemoteAtomic) != 0 && access&AccessLocalWrite == 0 {
		return fail(op, syscall.EINVAL, "%s needs LOCAL_WRITE too", access)
	}
	return nil
}

// pinned adds the remedy to the error of memory that could not be pinned.
func pinned(err error) error {
	if failure, ok := err.(*Error); ok && failure.Errno == syscall.ENOMEM {
		failure.Why = "the memory could not be pinned; raise ulimit -l"
	}
	return err
}

// Address is that of the first byte, as remote operations name it; 0 after Dereg.
func (mr *MR) Address() uint64 {
	if mr == nil || mr.c == nil {
		return 0
	}
	return mr.address
}

// Length is that of the registration, in bytes.
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
	mr.spare.Release()
	return nil
}

// ReregFlags select what of a memory region changes (enum ibv_rereg_mr_flags).
type ReregFlags int

// Rereg changes a memory region, also while requests use it (ibv_rereg_mr(3)): its memory with ReregTranslation, its
// PD with ReregPD, and its rights with ReregAccess. Arguments of other flags are ignored. After it returns, requests
// no longer reach the old memory. The region's keys may have changed.
//
// EINVAL without a flag, for rights that RegMR rejects, and for an empty region. EBUSY while windows are bound.
// EOPNOTSUPP on a device that cannot: use Dereg and RegMR there. After any other failure, Dereg may be the only valid
// call.
func (mr *MR) Rereg(flags ReregFlags, pd *PD, m *Memory, offset, length int, access Access) error {
	const op = "ibv_rereg_mr"
	if mr == nil || mr.c == nil {
		return closed(op, "MR")
	}
	if flags&ReregPD == 0 {
		pd = mr.pd
	}
	here := mr.pd.device.provider
	switch {
	case pd == nil || pd.c == nil:
		return closed(op, "PD")
	case pd.device.provider != here:
		return foreign(op, "PD", pd.device.provider, here)
	}
	if flags&ReregAccess == 0 {
		access = 0
	} else if err := checkRights(op, access); err != nil {
		return err
	}
	var address unsafe.Pointer
	if flags&ReregTranslation != 0 {
		var err error
		if address, err = m.part(op, offset, length); err != nil {
			return err
		}
	} else {
		m, length = nil, 0
	}
	var outcome C.enum_core_rereg
	err := check(
		op, int(C.core_rereg_mr(here.c, mr.c, C.int(flags), pd.c, address, C.size_t(length), C.int(access), &outcome)),
	)
	mr.changed(outcome, pd, m, address, length)
	if err == nil && flags&ReregAccess != 0 {
		mr.access = access
	}
	if failure, ok := err.(*Error); ok && failure.Errno == syscall.EOPNOTSUPP {
		failure.Why = "the device cannot change a region; deregister it and register again"
	}
	return pinned(err)
}

// ReregAt is Rereg for a guest, with regions of RegMRAt.  ibv_rereg_mr(3) names memory by where it is in this process,
// so one that moves becomes another region: its keys are others then.
func (mr *MR) ReregAt(flags ReregFlags, pd *PD, m *Memory, offset, length int, access Access) error {
	const op = "ibv_rereg_mr"
	if flags&ReregTranslation == 0 || mr == nil || mr.c == nil || mr.pd.device.IWARP() {
		return mr.Rereg(flags, pd, m, offset, length, access)
	}
	if length == 0 {
		return fail(op, syscall.EINVAL, "an empty region")
	}
	if flags&ReregAccess == 0 {
		access = mr.access
	}
	// The rest is changed first, so that it is the device that refuses what it does not do, or not now.
	if err := mr.Rereg(flags&^ReregTranslation|ReregAccess, pd, nil, 0, 0, access); err != nil {
		return err
	}
	moved, err := mr.pd.RegMRAt(m, offset, length, access)
	if err != nil {
		return err
	}
	former := *mr
	if err := former.Dereg(); err != nil { // a window was bound meanwhile
		return errors.Join(err, moved.Dereg())
	}
	*mr = *moved
	return nil
}

// changed takes over what the region stands for now.  m is nil where it did not move.
func (mr *MR) changed(outcome C.enum_core_rereg, pd *PD, m *Memory, address unsafe.Pointer, length int) {
	switch outcome {
	case C.CORE_REREG_NEW:
		mr.pd = pd
		if m != nil {
			mr.memory.Release()
			mr.memory, mr.address, mr.length = m, uint64(uintptr(address)), length
		}
	case C.CORE_REREG_OLD:
		m.Release()
	default: // the device may have either
		mr.spare.Release()
		mr.spare = m
	}
}
