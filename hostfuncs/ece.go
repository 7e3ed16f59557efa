package hostfuncs

import (
	"structs"

	"rdmarun/rdmacore"
)

// ECE is ibv_ece in guest memory.
type ECE struct {
	_          structs.HostLayout
	StructSize uint32 `abi:"struct_size" doc:"size of this struct as the guest knows it"`
	VendorID   uint32 `abi:"vendor_id" doc:"PCI number of the vendor; 0 for none"`
	Options    uint32 `abi:"options" doc:"the vendor's"`
	CompMask   uint32 `abi:"comp_mask" doc:"0"`
}

func eceFunctions() []Function {
	ep := Param{"ep", HandleOf, "ep", ""}
	return []Function{
		{
			Name: "set_local_ece", Since: v1_1, Capability: CapabilityCM,
			Doc: "Sets the enhanced connection establishment options to offer or to answer with, of an endpoint " +
				"without a QP of its own (rdma_set_local_ece(3)).",
			Params:  []Param{ep, {"ece", In, "ece", ""}},
			Errors:  "EINVAL: the endpoint has a QP, which does this by itself, or vendor_id is 0.",
			binding: bind2((*Instance).setLocalECE),
		},
		{
			Name: "get_remote_ece", Since: v1_1, Capability: CapabilityCM,
			Doc:     "Writes the options that the peer offered or answered with (rdma_get_remote_ece(3)).",
			Params:  []Param{ep, {"ece", InOut, "ece", ""}},
			Errors:  "EINVAL: the endpoint has a QP, or no peer.",
			binding: bind2((*Instance).getRemoteECE),
		},
		{
			Name: "reject_ece", Since: v1_1, Capability: CapabilityCM,
			Doc: "Rejects the request that made this endpoint for the options it came with; the peer gets REJECTED " +
				"with status 35 (rdma_reject_ece(3)).",
			Params: []Param{ep,
				{"private_data", In, "bytes", "handed to the peer; 0 if length is"},
				{"length", U32, "", "of private_data, in bytes; at most 148 for RC"}},
			Errors:  "EINVAL: no request is open, or too much private data.",
			binding: bind3((*Instance).rejectECE),
		},
		{
			Name: "set_ece", Since: v1_4, Capability: CapabilityWork,
			Doc:     "Sets the options of a QP itself, before it is in RTR (ibv_set_ece(3)).",
			Params:  []Param{{"qp", HandleOf, "qp", ""}, {"ece", In, "ece", ""}},
			Errors:  "EOPNOTSUPP: the device has none of that vendor.",
			binding: bind2((*Instance).setECE),
		},
		{
			Name: "query_ece", Since: v1_4, Capability: CapabilityWork,
			Doc: "Writes the options of a QP: those it can have before it is in RTR, those in use afterwards " +
				"(ibv_query_ece(3)).",
			Params:  []Param{{"qp", HandleOf, "qp", ""}, {"ece", InOut, "ece", ""}},
			Errors:  "EOPNOTSUPP: the device has none.",
			binding: bind2((*Instance).queryECE),
		},
		{
			Name: "notify", Since: v1_1, Capability: CapabilityCM,
			Doc: "Reports to the connection manager an asynchronous event of the endpoint's QP (rdma_notify(3)): " +
				"COMM_EST (4), data before the peer's last message, brings ESTABLISHED.",
			Params:  []Param{ep, {"event", U32, "", "number of enum ibv_event_type"}},
			Errors:  "EISCONN: it is established. EINVAL: another event, or nothing to establish.",
			binding: bind2((*Instance).notify),
		},
	}
}

func (i *Instance) setLocalECE(handle Handle, at Pointer) int32 {
	ece, wrong := readSized[ECE](i, at)
	if wrong != 0 {
		return i.badPointer("ece", wrong)
	}
	return i.onID(handle, func(id *rdmacore.ID) error { return id.SetLocalECE(ece.core()) })
}

func (e *ECE) core() rdmacore.ECE {
	return rdmacore.ECE{VendorID: e.VendorID, Options: e.Options, CompMask: e.CompMask}
}

func (i *Instance) getRemoteECE(handle Handle, at Pointer) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	ece, err := ep.id.GetRemoteECE()
	if err != nil {
		return i.fail(err)
	}
	return i.writeECE(at, ece)
}

func (i *Instance) writeECE(at Pointer, ece rdmacore.ECE) int32 {
	out := ECE{StructSize: 16, VendorID: ece.VendorID, Options: ece.Options, CompMask: ece.CompMask}
	if wrong := writeSized(i, at, &out); wrong != 0 {
		return i.badPointer("ece", wrong)
	}
	return 0
}

func (i *Instance) setECE(handle Handle, at Pointer) int32 {
	ece, wrong := readSized[ECE](i, at)
	if wrong != 0 {
		return i.badPointer("ece", wrong)
	}
	qp, ok := i.qps.get(handle)
	if !ok {
		return i.badHandle(kindQP)
	}
	return i.result(qp.SetECE(ece.core()))
}

func (i *Instance) queryECE(handle Handle, at Pointer) int32 {
	qp, ok := i.qps.get(handle)
	if !ok {
		return i.badHandle(kindQP)
	}
	ece, err := qp.QueryECE()
	if err != nil {
		return i.fail(err)
	}
	return i.writeECE(at, ece)
}

func (i *Instance) rejectECE(handle Handle, privateData Pointer, length uint32) int32 {
	private, wrong := i.bytes(privateData, length)
	if wrong != 0 {
		return i.badPointer("private_data", wrong)
	}
	return i.onID(handle, func(id *rdmacore.ID) error { return id.RejectECE(private) })
}

func (i *Instance) notify(handle Handle, event uint32) int32 {
	return i.start(handle, func(id *rdmacore.ID) error { return id.Notify(rdmacore.AsyncEventType(event)) })
}
