package rdmacore

// #include "core/core.h"
import "C"

import (
	"errors"
	"syscall"
	"unsafe"
)

// ReregFlags say what of a memory region changes (enum ibv_rereg_mr_flags).
type ReregFlags int

// Rereg changes a memory region, of which requests may be under way (ibv_rereg_mr(3)): where it is, with
// ReregTranslation, its PD, with ReregPD, and its rights, with ReregAccess; arguments of other flags do not count.
// From its return on nobody reaches what the region was before.  Its keys may be others then.
//
// EINVAL without a flag, for rights that RegMR would refuse, and for an empty region; EBUSY while windows are bound;
// EOPNOTSUPP on a device that cannot, which leaves Dereg and RegMR.  After any other failure the region may be
// good for Dereg only.
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
	err := check(op, int(C.core_rereg_mr(here.c, mr.c, C.int(flags), pd.c, address, C.size_t(length), C.int(access), &outcome)))
	mr.changed(outcome, pd, m, address, length)
	if err == nil && flags&ReregAccess != 0 {
		mr.access = access
	}
	if failure, ok := err.(*Error); ok && failure.Errno == syscall.EOPNOTSUPP {
		failure.Why = "the device cannot change a region; deregister it and register again"
	}
	return pinned(err)
}

// ReregAt is Rereg for a guest, whose regions are of RegMRAt.  ibv_rereg_mr(3) names memory by where it is in this process, so
// one that moves becomes another region: its keys are others then.
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
