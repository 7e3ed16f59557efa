package rdmacore

// #include "core/core.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// CreateSRQ makes a shared receive queue that belongs to the id (rdma_create_srq(3)); pd nil is the id's default.
// The QPs that shall use it name it in QPInitAttr.SRQ, and PostRecv of the id posts to it.  EINVAL for an id
// without a device or with an SRQ already, or a PD of another device or provider.
func (id *ID) CreateSRQ(pd *PD, attr SRQAttr) error {
	const op = "rdma_create_srq"
	switch {
	case !id.open():
		return closed(op, "id")
	case pd != nil && pd.c == nil:
		return closed(op, "PD")
	case pd != nil && pd.device.provider != id.channel.provider:
		return foreign(op, "PD", pd.device.provider, id.channel.provider)
	case id.srq != nil:
		return fail(op, syscall.EINVAL, "the id has an SRQ already")
	}
	srq := &SRQ{pd: pd, id: id}
	var native *C.struct_ibv_pd
	if pd != nil {
		native = pd.c
	} else {
		srq.pd = id.PD()
	}
	var init C.struct_ibv_srq_init_attr
	init.attr.max_wr, init.attr.max_sge = C.uint32_t(attr.MaxWR), C.uint32_t(attr.MaxSGE)
	if err := id.call(op, "", func() C.int { return C.core_id_create_srq(id.native(), id.c, native, &init) }); err != nil {
		return err
	}
	srq.c = id.c.srq
	id.channel.provider.remember(unsafe.Pointer(srq.c), srq)
	id.srq = srq
	return nil
}

// SRQ is the id's own shared receive queue, or nil.
func (id *ID) SRQ() *SRQ {
	if !id.open() {
		return nil
	}
	return id.srq
}

// DestroySRQ frees the id's shared receive queue (rdma_destroy_srq(3)), and unlike it says so when it cannot:
// EBUSY while QPs use it.
func (id *ID) DestroySRQ() error {
	const op = "rdma_destroy_srq"
	if !id.open() {
		return closed(op, "id")
	}
	srq := id.srq
	if srq == nil {
		return closed(op, "SRQ")
	}
	err := id.channel.provider.destroy(func() error { return check(op, int(C.core_id_destroy_srq(id.native(), id.c))) },
		unsafe.Pointer(srq.c))
	if err != nil {
		return err
	}
	srq.c, id.srq = nil, nil
	return nil
}
