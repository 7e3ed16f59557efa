package hostfuncs

import (
	"structs"

	"rdmarun/rdmacore"
)

// QPInitAttr is ibv_qp_init_attr in guest memory.
type QPInitAttr struct {
	_             structs.HostLayout
	StructSize    uint32 `abi:"struct_size" doc:"size of this struct as the guest knows it"`
	Type          uint32 `abi:"qp_type" enum:"qp_type" doc:"0 for what the port space of the endpoint has: RC for TCP, UD for UDP"`
	MaxSendWR     uint32 `abi:"max_send_wr" doc:"send requests outstanding at once"`
	MaxRecvWR     uint32 `abi:"max_recv_wr" doc:"receives posted at once"`
	MaxSendSGE    uint32 `abi:"max_send_sge" doc:"buffers of one send request"`
	MaxRecvSGE    uint32 `abi:"max_recv_sge" doc:"buffers of one receive"`
	MaxInlineData uint32 `abi:"max_inline_data" doc:"bytes of a request with SEND_INLINE"`
	SQSigAll      uint32 `abi:"sq_sig_all" doc:"1: every send request completes with a completion"`
	SendCQ        Handle `abi:"send_cq" doc:"cq handle; 0: one of max_send_wr entries is made and goes with the QP of an endpoint"`
	RecvCQ        Handle `abi:"recv_cq" doc:"cq handle; 0: one of max_recv_wr entries is made and goes with the QP of an endpoint"`
	SRQ           Handle `abi:"srq" doc:"srq handle; 0: the QP has a receive queue of its own"`
	Reserved      uint32 `abi:"reserved" doc:"0"`
}

// qpInitAttr reads an optional QPInitAttr; nil for a null pointer.
func (i *Instance) qpInitAttr(at Pointer) (*rdmacore.QPInitAttr, int32) {
	if at == 0 {
		return nil, 0
	}
	attr, wrong := readSized[QPInitAttr](i, at)
	if wrong != 0 {
		return nil, i.badPointer("qp_init_attr", wrong)
	}
	core := &rdmacore.QPInitAttr{
		Type: rdmacore.QPType(attr.Type), MaxSendWR: attr.MaxSendWR, MaxRecvWR: attr.MaxRecvWR,
		MaxSendSGE: attr.MaxSendSGE, MaxRecvSGE: attr.MaxRecvSGE,
		MaxInlineData: attr.MaxInlineData, SignalAll: attr.SQSigAll != 0,
	}
	for _, given := range []struct {
		handle Handle
		cq     **rdmacore.CQ
	}{{attr.SendCQ, &core.SendCQ}, {attr.RecvCQ, &core.RecvCQ}} {
		if given.handle == 0 {
			continue
		}
		cq, ok := i.cqs.get(given.handle)
		if !ok {
			return nil, i.badHandle(kindCQ)
		}
		*given.cq = cq
	}
	if attr.SRQ != 0 {
		srq, ok := i.srqs.get(attr.SRQ)
		if !ok {
			return nil, i.badHandle(kindSRQ)
		}
		core.SRQ = srq
	}
	return core, 0
}
