package rdmacore

// #include "core/core.h"
import "C"

import (
	"errors"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// QPType is the transport of a queue pair (enum ibv_qp_type).
type QPType int

// QPState is the state of a queue pair (enum ibv_qp_state).
type QPState int

// QPInitAttr describes a queue pair to make (struct ibv_qp_init_attr).
type QPInitAttr struct {
	Type          QPType // 0: what the port space of the id has, RC for TCP and UD for UDP
	MaxSendWR     uint32
	MaxRecvWR     uint32
	MaxSendSGE    uint32
	MaxRecvSGE    uint32
	MaxInlineData uint32 // bytes
	SignalAll     bool   // every send request makes a completion
	SendCQ        *CQ    // nil: made with the QP, MaxSendWR entries long, and destroyed with it
	RecvCQ        *CQ    // nil: likewise
	SRQ           *SRQ   // where its receives come from; nil: from its own queue
	// SendOps are the operations that are posted by the builders of ibv_wr_post(3), and then only those; 0: posts go by
	// ibv_post_send(3).
	SendOps SendOps
}

// QP is a queue pair: of an id, or of a PD alone.
type QP struct {
	c              *C.struct_ibv_qp // nil once destroyed
	provider       *Provider
	id             *ID // nil for one of PD.CreateQP
	number         uint32
	attr           QPInitAttr
	sendCQ, recvCQ *CQ
	groups         []multicastGroup    // that it is attached to
	builder        *C.struct_ibv_qp_ex // nil: it has none
	built          SendOps             // what the builder does of SendOps
	heavy          atomic.Bool         // a guest has posted what takes long (Work)
}

// CreateQP makes the id's queue pair (rdma_create_qp(3)). pd nil is the default PD of the id's device. EINVAL for an
// id without a device, with a QP already, or with a PD or CQ of another device or provider. ENOMEM or EINVAL for more
// than the device can. With SendOps as CreateQPEx.
func (id *ID) CreateQP(pd *PD, attr QPInitAttr) error {
	if attr.SendOps != 0 {
		return id.CreateQPEx(pd, QPInitAttrEx{QPInitAttr: attr})
	}
	return id.createQP("rdma_create_qp", pd, attr,
		func(native *C.struct_ibv_pd, c *C.struct_ibv_qp_init_attr) C.int {
			return C.core_create_qp(id.native(), id.c, native, c)
		})
}

// checkQP finds what librdmacm would not notice, or crash of.
func (id *ID) checkQP(op string, pd *PD, attr *QPInitAttr) error {
	switch {
	case !id.open():
		return closed(op, "id")
	case pd != nil && pd.c == nil:
		return closed(op, "PD")
	case attr.SendCQ != nil && !attr.SendCQ.open(), attr.RecvCQ != nil && !attr.RecvCQ.open():
		return closed(op, "CQ")
	case attr.SRQ != nil && !attr.SRQ.open():
		return closed(op, "SRQ")
	case id.qp != nil:
		return fail(op, syscall.EINVAL, "the id has a QP already")
	}
	here := id.channel.provider
	if pd != nil && pd.device.provider != here {
		return foreign(op, "PD", pd.device.provider, here)
	}
	for _, cq := range [...]*CQ{attr.SendCQ, attr.RecvCQ} {
		if cq != nil && cq.provider != here {
			return foreign(op, "CQ", cq.provider, here)
		}
	}
	if attr.SRQ != nil && attr.SRQ.pd.device.provider != here {
		return foreign(op, "SRQ", attr.SRQ.pd.device.provider, here)
	}
	if pd != nil && id.bound() && pd.c.context != id.c.verbs {
		return fail(op, syscall.EINVAL, "the PD is on %s, the id on %s", pd.Device().Name(),
			id.Device().Name())
	}
	return nil
}

func (id *ID) createQP(op string, pd *PD, attr QPInitAttr,
	create func(*C.struct_ibv_pd, *C.struct_ibv_qp_init_attr) C.int) error {
	if err := id.checkQP(op, pd, &attr); err != nil {
		return err
	}
	var nativePD *C.struct_ibv_pd
	if pd != nil {
		nativePD = pd.c
	}
	c := attr.toC()
	if err := id.call(op, "", func() C.int { return create(nativePD, &c) }); err != nil {
		return id.Device().beyond(err, attr.demands)
	}
	p := id.channel.provider
	qp := &QP{c: id.c.qp, provider: p, id: id, number: uint32(id.c.qp.qp_num),
		sendCQ: attr.SendCQ, recvCQ: attr.RecvCQ}
	if qp.sendCQ == nil {
		qp.sendCQ = p.newCQ(id.c.send_cq, id.c.send_cq_channel, id)
	}
	if qp.recvCQ == nil {
		qp.recvCQ = p.newCQ(id.c.recv_cq, id.c.recv_cq_channel, id)
	}
	qp.known(attr, &c)
	id.pd, id.qp = pd, qp
	return nil
}

// known is the end of a QP's making: it is found in events, and its queues have one more user.
func (q *QP) known(attr QPInitAttr, c *C.struct_ibv_qp_init_attr) {
	q.attr = attr
	q.attr.Type = QPType(c.qp_type)
	q.attr.granted(&c.cap)
	q.attr.SendCQ, q.attr.RecvCQ = q.sendCQ, q.recvCQ
	q.provider.remember(unsafe.Pointer(q.c), q)
	q.provider.cqUsers.Lock()
	defer q.provider.cqUsers.Unlock()
	for _, cq := range q.queues() {
		cq.users++
	}
}

// queues are the completion queues of the QP, each once.
func (q *QP) queues() []*CQ {
	if q.sendCQ == q.recvCQ {
		return []*CQ{q.sendCQ}
	}
	return []*CQ{q.sendCQ, q.recvCQ}
}

func (attr *QPInitAttr) toC() C.struct_ibv_qp_init_attr {
	var c C.struct_ibv_qp_init_attr
	c.qp_type = uint32(attr.Type)
	c.cap.max_send_wr = C.uint32_t(attr.MaxSendWR)
	c.cap.max_recv_wr = C.uint32_t(attr.MaxRecvWR)
	c.cap.max_send_sge = C.uint32_t(attr.MaxSendSGE)
	c.cap.max_recv_sge = C.uint32_t(attr.MaxRecvSGE)
	c.cap.max_inline_data = C.uint32_t(attr.MaxInlineData)
	if attr.SignalAll {
		c.sq_sig_all = 1
	}
	c.send_cq, c.recv_cq, c.srq = attr.SendCQ.native(), attr.RecvCQ.native(), attr.SRQ.native()
	return c
}

// granted takes over what the provider made of the wishes, which may be more.
func (attr *QPInitAttr) granted(cap *C.struct_ibv_qp_cap) {
	attr.MaxSendWR = uint32(cap.max_send_wr)
	attr.MaxRecvWR = uint32(cap.max_recv_wr)
	attr.MaxSendSGE = uint32(cap.max_send_sge)
	attr.MaxRecvSGE = uint32(cap.max_recv_sge)
	attr.MaxInlineData = uint32(cap.max_inline_data)
}

// DestroyQP frees the queue pair and the CQs created with it (rdma_destroy_qp(3)). A CQ that other QPs use as well is
// freed with the last of them. Requests still queued disappear without completions, and the QP leaves the groups that
// it was attached to. EBUSY when the provider reports that it is in use. The id then keeps it with all that belongs to
// it.
func (id *ID) DestroyQP() error {
	const op = "rdma_destroy_qp"
	if !id.open() {
		return closed(op, "id")
	}
	qp := id.qp
	if qp == nil {
		return closed(op, "QP")
	}
	if err := qp.leaveGroups(); err != nil { // a group keeps the device busy, and no later call reports it
		return err
	}
	p := id.channel.provider
	p.cqUsers.Lock()
	defer p.cqUsers.Unlock()
	keepSend, keepRecv := id.keeps(id.c.send_cq, qp.sendCQ), id.keeps(id.c.recv_cq, qp.recvCQ)
	// Waiting goroutines have ended before the objects are freed.
	native, builder, handles := qp.c, qp.builder, []unsafe.Pointer{unsafe.Pointer(qp.c)}
	var restore []func()
	for _, cq := range qp.queues() {
		if cq.goesWith(id) {
			handles = append(handles, unsafe.Pointer(cq.c))
			restore = append(restore, cq.retire())
		}
	}
	qp.c, qp.builder = nil, nil
	destroy := func() C.int { return C.core_destroy_qp(p.c, id.c, C.bool(keepSend), C.bool(keepRecv)) }
	if err := p.destroy(func() error { return id.call(op, "", destroy) }, handles...); err != nil {
		qp.c, qp.builder = native, builder
		for _, undo := range restore {
			undo()
		}
		return err
	}
	id.qp, id.pd = nil, nil
	return qp.leaveQueues()
}

// leaveQueues takes a QP that is gone from the users of its queues.  The caller holds cqUsers.
func (q *QP) leaveQueues() error {
	var errs []error
	for _, cq := range q.queues() {
		cq.users--
		cq.forgetSeen(q.number)
		switch {
		case cq.id != nil && cq.id == q.id && cq.users > 0:
			cq.id, cq.left = nil, true
		case cq.left && cq.users == 0: // left to the QP by others
			errs = append(errs, cq.free("ibv_destroy_cq"))
		}
	}
	return errors.Join(errs...)
}

// goesWith reports whether the queue is destroyed with the id's QP.  The caller holds cqUsers.
func (c *CQ) goesWith(id *ID) bool { return c.id == id && c.users == 1 }

// keeps reports whether a queue that the id has made is to outlive its QP.  The caller holds cqUsers.
func (id *ID) keeps(made *C.struct_ibv_cq, cq *CQ) bool {
	return made != nil && cq.c == made && !cq.goesWith(id)
}

func (q *QP) open() bool { return q != nil && q.c != nil }

// Num is the QP number.
func (q *QP) Num() uint32 {
	if q == nil {
		return 0
	}
	return q.number
}

// InitAttr is what the QP was made with, sizes as the provider granted them and its CQs filled in.
func (q *QP) InitAttr() QPInitAttr {
	if q == nil {
		return QPInitAttr{}
	}
	return q.attr
}
