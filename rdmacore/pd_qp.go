package rdmacore

// #include "core/core.h"
import "C"

import (
	"syscall"
	"unsafe"
)

// CreateQP makes a queue pair without an id, in RESET (ibv_create_qp(3)): Modify brings it to RTS, and Destroy frees
// it. Its type and both CQs must be given.  EINVAL for CQs or an SRQ of another device or provider, EINVAL or ENOMEM
// for more than the device can.  With SendOps as CreateQPEx.
func (pd *PD) CreateQP(attr QPInitAttr) (*QP, error) {
	if attr.SendOps != 0 {
		return pd.CreateQPEx(QPInitAttrEx{QPInitAttr: attr})
	}
	return pd.createQP("ibv_create_qp", attr, nil)
}

// CreateQPEx is CreateQP with extended attributes (ibv_create_qp_ex(3)).  EOPNOTSUPP for what the device lacks.
func (pd *PD) CreateQPEx(attr QPInitAttrEx) (*QP, error) {
	const op = "ibv_create_qp_ex"
	extra, err := attr.extra(op)
	if err != nil {
		return nil, err
	}
	qp, err := pd.createQP(op, attr.QPInitAttr, &extra)
	if err == nil {
		qp.findBuilder(&extra)
	}
	return qp, err
}

func (pd *PD) createQP(op string, attr QPInitAttr, extra *C.struct_core_qp_extra) (*QP, error) {
	if err := pd.checkQP(op, &attr); err != nil {
		return nil, err
	}
	p := pd.device.provider
	qp := &QP{provider: p, sendCQ: attr.SendCQ, recvCQ: attr.RecvCQ}
	c := attr.toC()
	answer := p.ask(func() C.int { return C.core_pd_create_qp(p.c, pd.c, &c, extra, &qp.c) })
	if err := answer.err(op); err != nil {
		return nil, pd.device.beyond(err, attr.demands)
	}
	qp.number = uint32(qp.c.qp_num)
	qp.known(attr, &c)
	return qp, nil
}

// checkQP finds what libibverbs would not notice, or crash of.
func (pd *PD) checkQP(op string, attr *QPInitAttr) error {
	if pd == nil || pd.c == nil {
		return closed(op, "PD")
	}
	for _, cq := range [...]*CQ{attr.SendCQ, attr.RecvCQ} {
		switch {
		case cq == nil:
			return fail(
				op, syscall.EINVAL, "a queue pair without an id takes a CQ for its sends and one for its receives",
			)
		case !cq.open():
			return closed(op, "CQ")
		case cq.c.context != pd.c.context:
			return fail(op, syscall.EINVAL, "the CQ is on another device than the PD")
		}
	}
	switch srq := attr.SRQ; {
	case srq == nil:
	case !srq.open():
		return closed(op, "SRQ")
	case srq.c.context != pd.c.context:
		return fail(op, syscall.EINVAL, "the SRQ is on another device than the PD")
	}
	if attr.Type == 0 {
		return fail(op, syscall.EINVAL, "a queue pair without an id has no port space to take its type from")
	}
	return nil
}

// Destroy frees a queue pair of PD.CreateQP (ibv_destroy_qp(3)).  Requests still queued disappear without completions,
// and it leaves the groups that it was attached to.  EINVAL for the queue pair of an id, which ID.DestroyQP frees.
func (q *QP) Destroy() error {
	const op = "ibv_destroy_qp"
	if !q.open() {
		return closed(op, "QP")
	}
	if q.id != nil {
		return fail(op, syscall.EINVAL, "this QP was made by rdma_create_qp and goes with rdma_destroy_qp")
	}
	if err := q.leaveGroups(); err != nil {
		return err
	}
	p := q.provider
	p.cqUsers.Lock()
	defer p.cqUsers.Unlock()
	native := q.c
	q.c = nil // posting goroutines have ended before
	destroy := func() error { return check(op, int(C.core_pd_destroy_qp(p.c, native))) }
	if err := p.destroy(destroy, unsafe.Pointer(native)); err != nil {
		q.c = native
		return err
	}
	q.builder = nil
	return q.leaveQueues()
}
