package hostfuncs

import (
	"structs"

	"rdmarun/rdmacore"
)

// SRQAttr is ibv_srq_attr in guest memory.
type SRQAttr struct {
	_          structs.HostLayout
	StructSize uint32 `abi:"struct_size" doc:"size of this struct as the guest knows it, set before the call"`
	MaxWR      uint32 `abi:"max_wr" doc:"receives posted at once"`
	MaxSGE     uint32 `abi:"max_sge" doc:"buffers of one receive"`
	Limit      uint32 `abi:"srq_limit" doc:"when fewer receives are left, SRQ_LIMIT_REACHED comes, once; 0: never"`
}

func srqFunctions() []Function {
	srq := Param{"srq", HandleOf, "srq", ""}
	return []Function{
		{
			Name: "create_srq", Since: v1_2, Capability: CapabilityWork,
			Doc: "Makes a shared receive queue (ibv_create_srq(3)): its receives go to whichever of its QPs " +
				"gets the next message. srq_limit is ignored.",
			Params:  []Param{{"pd", HandleOf, "pd", ""}, {"attr", In, "srq_attr", ""}},
			Result:  "the SRQ's handle",
			Errors:  "EINVAL: more than the device can do.",
			binding: bind2((*Instance).createSRQ),
		},
		{
			Name: "query_srq", Since: v1_2, Capability: CapabilityWork,
			Doc:     "Writes the sizes that were granted, and the limit while it is armed (ibv_query_srq(3)).",
			Params:  []Param{srq, {"attr", InOut, "srq_attr", ""}},
			binding: bind2((*Instance).querySRQ),
		},
		{
			Name: "arm_srq", Since: v1_2, Capability: CapabilityWork,
			Doc:     "Asks for SRQ_LIMIT_REACHED when fewer receives are left (ibv_modify_srq(3)).",
			Params:  []Param{srq, {"srq_limit", U32, "", "0: never"}},
			Errors:  "EINVAL: more than the queue holds.",
			binding: bind2((*Instance).armSRQ),
		},
		{
			Name: "resize_srq", Since: v1_2, Capability: CapabilityWork,
			Doc:     "Makes room for a number of receives (ibv_modify_srq(3)).",
			Params:  []Param{srq, {"max_wr", U32, "", ""}},
			Errors:  "EINVAL: more are posted, or the device cannot hold that number.",
			binding: bind2((*Instance).resizeSRQ),
		},
		{
			Name: "post_srq_recv", Since: v1_2, Capability: CapabilityWork,
			Doc:     "Posts receives to a shared queue (ibv_post_srq_recv(3)), otherwise as post_recv.",
			Params:  append([]Param{srq}, requests("recv_wr")[1:]...),
			Result:  "the number posted, which is count",
			Errors:  "As post_send.",
			binding: bind6((*Instance).postSRQRecv),
		},
		{
			Name: "destroy_srq", Since: v1_2, Capability: CapabilityWork,
			Doc:     "Destroys a shared receive queue (ibv_destroy_srq(3)).",
			Params:  []Param{srq},
			Errors:  "EBUSY: QPs use it.",
			binding: bind1((*Instance).destroySRQ),
		},
	}
}

func (i *Instance) createSRQ(pdHandle Handle, at Pointer) int32 {
	pd, ok := i.pds.get(pdHandle)
	if !ok {
		return i.badHandle(kindPD)
	}
	attr, wrong := readSized[SRQAttr](i, at)
	if wrong != 0 {
		return i.badPointer("attr", wrong)
	}
	return create(i, &i.srqs, srqCost(attr.MaxWR, attr.MaxSGE), func() (*rdmacore.SRQ, error) {
		return pd.CreateSRQ(rdmacore.SRQAttr{MaxWR: attr.MaxWR, MaxSGE: attr.MaxSGE})
	}, (*rdmacore.SRQ).Destroy)
}

func (i *Instance) querySRQ(handle Handle, at Pointer) int32 {
	return i.onSRQ(handle, func(srq *rdmacore.SRQ) int32 {
		attr, err := srq.Query()
		if err != nil {
			return i.fail(err)
		}
		out := SRQAttr{MaxWR: attr.MaxWR, MaxSGE: attr.MaxSGE, Limit: attr.Limit}
		if wrong := writeSized(i, at, &out); wrong != 0 {
			return i.badPointer("attr", wrong)
		}
		return 0
	})
}

func (i *Instance) armSRQ(handle Handle, limit uint32) int32 {
	return i.onSRQ(handle, func(srq *rdmacore.SRQ) int32 { return i.done(srq.Arm(limit)) })
}

func (i *Instance) resizeSRQ(handle Handle, maxWR uint32) int32 {
	return i.onSRQ(handle, func(srq *rdmacore.SRQ) int32 {
		attr, err := srq.Query()
		if err != nil {
			return i.fail(err)
		}
		return resize(i, &i.srqs, handle, srqCost(maxWR, attr.MaxSGE), func() error { return srq.Resize(maxWR) })
	})
}

func (i *Instance) postSRQRecv(
	handle Handle, wrs Pointer, count uint32, sges Pointer, numSGEs uint32, out Pointer,
) int32 {
	return i.onSRQ(handle, func(srq *rdmacore.SRQ) int32 {
		return post(i, srq, wrs, count, sges, numSGEs, out, nil, srqRecvAt)
	})
}

func (i *Instance) destroySRQ(handle Handle) int32 {
	return destroy(i, &i.srqs, handle, (*rdmacore.SRQ).Destroy)
}

func (i *Instance) onSRQ(handle Handle, do func(*rdmacore.SRQ) int32) int32 {
	srq, ok := i.srqs.get(handle)
	if !ok {
		return i.badHandle(kindSRQ)
	}
	return do(srq)
}

// done is the result of a call that has no other.
func (i *Instance) done(err error) int32 {
	if err != nil {
		return i.fail(err)
	}
	return 0
}

func srqRecvAt(i *Instance, srq *rdmacore.SRQ, wrs []rdmacore.RecvWR, sges []rdmacore.SGE) (int, error) {
	return srq.PostRecvAt(i.base, uint64(len(i.memory)), wrs, sges)
}
