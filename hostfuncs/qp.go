package hostfuncs

import (
	"syscall"

	"rdmarun/rdmacore"
)

func qpFunctions() []Function {
	ep := Param{"ep", HandleOf, "ep", ""}
	return []Function{
		{
			Name: "create_qp", Since: v1, Capability: CapabilityCM,
			Doc: "Gives an endpoint its QP (rdma_create_qp(3)), when create_ep did not. Without an endpoint, " +
				"since 1.6, it makes one of the PD alone, in RESET (ibv_create_qp(3)). Its qp_type and CQs must " +
				"be given, and modify_qp brings it to RTS.",
			Params: []Param{owner(),
				{"pd", HandleOf, "pd", "of the endpoint's device"},
				{"qp_init_attr", In, "qp_init_attr", ""}},
			Result: "the QP's handle",
			Errors: "EINVAL: it has one, or is not on a device yet; without an endpoint, a required member is " +
				"missing, or of another device. ENOMEM: more than the device can do.",
			binding: bind3((*Instance).createQP),
		},
		{
			Name: "destroy_qp", Since: v1, Capability: CapabilityCM,
			Doc: "Destroys an endpoint's QP and the CQs made with it (rdma_destroy_qp(3)), or a QP without an " +
				"endpoint (ibv_destroy_qp(3)).",
			Params:  []Param{{"ep", HandleOf, "ep", "or a qp (since 1.6) that was made without one"}},
			Errors:  "EINVAL: it has none, or the QP is an endpoint's.",
			binding: bind1((*Instance).destroyQP),
		},
		{
			Name: "ep_qp", Since: v1, Capability: CapabilityCM,
			Doc:    "Finds the QP of an endpoint.",
			Params: []Param{ep},
			Result: "the QP's handle", Errors: "ENOENT: it has none.",
			binding: bind1((*Instance).epQP),
		},
		{
			Name: "ep_send_cq", Since: v1, Capability: CapabilityCM,
			Doc:    "Finds the CQ on which an endpoint's send requests complete.",
			Params: []Param{ep},
			Result: "the CQ's handle", Errors: "ENOENT: the endpoint has no QP.",
			binding: bind1((*Instance).epSendCQ),
		},
		{
			Name: "ep_recv_cq", Since: v1, Capability: CapabilityCM,
			Doc:    "Finds the CQ on which an endpoint's receives complete.",
			Params: []Param{ep},
			Result: "the CQ's handle", Errors: "ENOENT: the endpoint has no QP.",
			binding: bind1((*Instance).epRecvCQ),
		},
		{
			Name: "query_qp", Since: v1, Capability: CapabilityWork,
			Doc:     "Writes the state and the limits of a QP (ibv_query_qp(3)).",
			Params:  []Param{{"qp", HandleOf, "qp", ""}, {"attr", InOut, "qp_attr", ""}},
			binding: bind2((*Instance).queryQP),
		},
	}
}

// owner is the parameter with the id of the QP.
func owner() Param {
	return Param{"ep", HandleOf, "ep", "0 for a QP without an endpoint (since 1.6)"}
}

func (i *Instance) createQP(epHandle, pdHandle Handle, attrAt Pointer) int32 {
	return i.makeQP(epHandle, pdHandle, attrAt, (*rdmacore.ID).CreateQP, (*rdmacore.PD).CreateQP)
}

// makeQP makes the QP of an endpoint by one function, or one without an endpoint by the other.
func (i *Instance) makeQP(
	epHandle, pdHandle Handle, attrAt Pointer,
	make func(*rdmacore.ID, *rdmacore.PD, rdmacore.QPInitAttr) error,
	alone func(*rdmacore.PD, rdmacore.QPInitAttr) (*rdmacore.QP, error),
) int32 {
	ep, ok := i.endpoints.get(epHandle)
	if !ok && epHandle != 0 {
		return i.badHandle(kindEP)
	}
	pd, ok := i.pds.get(pdHandle)
	if !ok {
		return i.badHandle(kindPD)
	}
	attr, failed := i.qpInitAttr(attrAt)
	if failed != 0 {
		return failed
	}
	if attr == nil {
		return i.badPointer("qp_init_attr", faultOutside)
	}
	if ep == nil {
		return create(
			i, &i.qps, qpCost(attr), func() (*rdmacore.QP, error) { return alone(pd, *attr) }, (*rdmacore.QP).Destroy,
		)
	}
	if failed := i.giveQP(ep, attr, func() error { return make(ep.id, pd, *attr) }); failed != 0 {
		return failed
	}
	return int32(ep.qp)
}

// giveQP makes the QP of an endpoint within the guest's budget, on a device that the guest may use.
func (i *Instance) giveQP(ep *endpoint, attr *rdmacore.QPInitAttr, make func() error) int32 {
	if device := ep.id.Device(); device != nil {
		if err := i.mayOpen(device); err != nil {
			return i.fail(err)
		}
	}
	cost := qpCost(attr)
	if err := i.budget.Charge(cost); err != nil {
		return i.fail(err)
	}
	if err := make(); err != nil {
		i.budget.Credit(cost)
		return i.fail(err)
	}
	if i.nameQP(ep, attr, cost) {
		return 0
	}
	if err := ep.id.DestroyQP(); err != nil {
		return i.fail(err)
	}
	i.forgetQP(ep)
	return i.refuse(syscall.EMFILE, "a guest can have at most 65536 objects of a kind")
}

// adoptQP charges and names the QP that a new endpoint may have.
func (i *Instance) adoptQP(ep *endpoint) int32 {
	qp := ep.id.QP()
	if qp == nil {
		return 0
	}
	attr := qp.InitAttr()
	if i.cqs.find(attr.SendCQ) == 0 {
		attr.SendCQ = nil // made with the QP
	}
	if i.cqs.find(attr.RecvCQ) == 0 {
		attr.RecvCQ = nil
	}
	return i.giveQP(ep, &attr, func() error { return nil })
}

func (i *Instance) destroyQP(handle Handle) int32 {
	if qp, ok := i.qps.get(handle); ok {
		return i.result(i.freeQP(handle, qp))
	}
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	err := ep.id.DestroyQP()
	i.forgetQP(ep)
	return i.result(err)
}

// freeQP destroys a QP that was made without an endpoint.
func (i *Instance) freeQP(handle Handle, qp *rdmacore.QP) error {
	attr := qp.InitAttr()
	if err := qp.Destroy(); err != nil {
		return err
	}
	i.qps.remove(handle)
	i.forgetCQs(i.cqs.find(attr.SendCQ), i.cqs.find(attr.RecvCQ))
	return nil
}

// nameQP assigns handles to the QP that an endpoint has by now, for which cost was charged, and to the CQs created
// with it. It returns false when there are no more handles. A CQ may outlive its QP, and so has its part of the cost.
func (i *Instance) nameQP(ep *endpoint, attr *rdmacore.QPInitAttr, cost Cost) (ok bool) {
	for _, queue := range []struct {
		cq      *rdmacore.CQ
		made    bool
		entries uint32
		handle  *Handle
	}{
		{ep.id.SendCQ(), attr.SendCQ == nil, attr.MaxSendWR, &ep.sendCQ},
		{ep.id.RecvCQ(), attr.RecvCQ == nil, attr.MaxRecvWR, &ep.recvCQ},
	} {
		if !queue.made {
			*queue.handle = i.cqs.find(queue.cq)
			continue
		}
		if *queue.handle, ok = i.cqs.add(queue.cq, cqCost(queue.entries)); !ok {
			i.budget.Credit(cost)
			return false
		}
		cost = cost.minus(cqCost(queue.entries))
	}
	if ep.qp, ok = i.qps.add(ep.id.QP(), cost); !ok {
		i.budget.Credit(cost)
	}
	return ok
}

// forgetQP makes the handles stale that were freed with an endpoint's QP, if it was. A CQ stays as long as another QP
// uses it.
func (i *Instance) forgetQP(ep *endpoint) {
	if ep.id.QP() != nil {
		return
	}
	i.forgetCQs(ep.sendCQ, ep.recvCQ)
	i.qps.remove(ep.qp)
	ep.qp, ep.sendCQ, ep.recvCQ = 0, 0, 0
}

// forgetCQs makes the handles of CQs stale that have gone with their last QP.
func (i *Instance) forgetCQs(handles ...Handle) {
	for _, handle := range handles {
		if cq, ok := i.cqs.get(handle); ok && cq.Destroyed() {
			i.cqs.remove(handle)
		}
	}
}

func (i *Instance) epQP(handle Handle) int32 {
	return i.ofEndpoint(handle, func(ep *endpoint) Handle { return ep.qp })
}

func (i *Instance) epSendCQ(handle Handle) int32 {
	return i.ofEndpoint(handle, func(ep *endpoint) Handle { return ep.sendCQ })
}

func (i *Instance) epRecvCQ(handle Handle) int32 {
	return i.ofEndpoint(handle, func(ep *endpoint) Handle { return ep.recvCQ })
}

func (i *Instance) ofEndpoint(handle Handle, of func(*endpoint) Handle) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	if of(ep) == 0 {
		return i.refuse(syscall.ENOENT, "the endpoint has no QP")
	}
	return int32(of(ep))
}

func (i *Instance) queryQP(handle Handle, at Pointer) int32 {
	qp, ok := i.qps.get(handle)
	if !ok {
		return i.badHandle(kindQP)
	}
	attr, err := qp.Query()
	if err != nil {
		return i.fail(err)
	}
	out := qpAttrOf(&attr)
	out.QPNum = qp.Num()
	if wrong := writeSized(i, at, &out); wrong != 0 {
		return i.badPointer("attr", wrong)
	}
	return 0
}
