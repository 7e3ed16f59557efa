package rdmacore

// #include "core/core.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// SRQAttr are the sizes of a shared receive queue (struct ibv_srq_attr).
type SRQAttr struct {
	MaxWR  uint32 // receives posted at once
	MaxSGE uint32 // buffers of a receive
	Limit  uint32 // when fewer receives are left, SRQ_LIMIT_REACHED comes, once; 0: never
}

// SRQ is a shared receive queue: its receives go to whichever of its QPs gets the next message.
type SRQ struct {
	c  *C.struct_ibv_srq // nil once destroyed
	pd *PD
	id *ID // of ID.CreateSRQ; nil for one of PD.CreateSRQ
}

// CreateSRQ makes a shared receive queue (ibv_create_srq(3)); attr.Limit is ignored.  EINVAL for more than
// the device can.
func (pd *PD) CreateSRQ(attr SRQAttr) (*SRQ, error) {
	const op = "ibv_create_srq"
	if pd == nil || pd.c == nil {
		return nil, closed(op, "PD")
	}
	var init C.struct_ibv_srq_init_attr
	init.attr.max_wr, init.attr.max_sge = C.uint32_t(attr.MaxWR), C.uint32_t(attr.MaxSGE)
	srq := &SRQ{pd: pd}
	p := pd.device.provider
	if err := check(op, int(C.core_create_srq(p.c, pd.c, &init, &srq.c))); err != nil {
		return nil, pd.device.beyond(err, attr.demands)
	}
	p.remember(unsafe.Pointer(srq.c), srq)
	return srq, nil
}

func (s *SRQ) open() bool { return s != nil && s.c != nil }

// native is nil for a nil queue: none given.
func (s *SRQ) native() *C.struct_ibv_srq {
	if s == nil {
		return nil
	}
	return s.c
}

// Query asks for the sizes that were granted, and the limit while it is armed (ibv_query_srq(3)).
func (s *SRQ) Query() (SRQAttr, error) {
	const op = "ibv_query_srq"
	if !s.open() {
		return SRQAttr{}, closed(op, "SRQ")
	}
	var attr C.struct_ibv_srq_attr
	if err := check(op, int(C.core_query_srq(s.pd.device.provider.c, s.c, &attr))); err != nil {
		return SRQAttr{}, err
	}
	return SRQAttr{uint32(attr.max_wr), uint32(attr.max_sge), uint32(attr.srq_limit)}, nil
}

// Arm asks for SRQ_LIMIT_REACHED when fewer than limit receives are left (ibv_modify_srq(3)).  EINVAL for a
// limit beyond the queue's size.
func (s *SRQ) Arm(limit uint32) error {
	return s.modify(C.struct_ibv_srq_attr{srq_limit: C.uint32_t(limit)}, C.IBV_SRQ_LIMIT)
}

// Resize makes room for maxWR receives (ibv_modify_srq(3)).  EINVAL when more are posted.
func (s *SRQ) Resize(maxWR uint32) error {
	return s.modify(C.struct_ibv_srq_attr{max_wr: C.uint32_t(maxWR)}, C.IBV_SRQ_MAX_WR)
}

func (s *SRQ) modify(attr C.struct_ibv_srq_attr, mask C.int) error {
	const op = "ibv_modify_srq"
	if !s.open() {
		return closed(op, "SRQ")
	}
	err := check(op, int(C.core_modify_srq(s.pd.device.provider.c, s.c, &attr, mask)))
	return s.pd.device.beyond(err, (&SRQAttr{MaxWR: uint32(attr.max_wr)}).demands)
}

// PostRecv posts receives (ibv_post_srq_recv(3)), otherwise as QP.PostRecv.
func (s *SRQ) PostRecv(wrs []RecvWR, sges []SGE) (accepted int, err error) {
	const op = "ibv_post_srq_recv"
	if !s.open() {
		return 0, closed(op, "SRQ")
	}
	return posted(op, hotPostSRQRecv(unsafe.Pointer(s.c), wrs, sges, 0, 0))
}

// PostRecvAt is PostRecv for a guest, as QP.postSendAt.
func (s *SRQ) PostRecvAt(base uintptr, limit uint64, wrs []RecvWR, sges []SGE) (accepted int, err error) {
	const op = "ibv_post_srq_recv"
	if !s.open() {
		return 0, closed(op, "SRQ")
	}
	if limit == 0 && len(sges) != 0 {
		return 0, &Error{Op: op, Errno: syscall.EFAULT, Why: postReason(syscall.EFAULT)}
	}
	return posted(op, hotPostSRQRecv(unsafe.Pointer(s.c), wrs, sges, base, limit))
}

// Destroy frees the queue (ibv_destroy_srq(3)); what was posted disappears.  EBUSY while QPs use it.
func (s *SRQ) Destroy() error {
	const op = "ibv_destroy_srq"
	if !s.open() {
		return closed(op, "SRQ")
	}
	if s.id != nil {
		return fail(op, syscall.EINVAL, "this SRQ is its id's; rdma_destroy_srq frees it")
	}
	p := s.pd.device.provider
	err := p.destroy(func() error { return check(op, int(C.core_destroy_srq(p.c, s.c))) }, unsafe.Pointer(s.c))
	if err != nil {
		return err
	}
	s.c = nil
	return nil
}
