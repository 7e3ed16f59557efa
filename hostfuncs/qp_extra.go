package hostfuncs

import (
	"structs"
	"syscall"

	"rdmarun/rdmacore"
)

// QPExtra is what ibv_qp_init_attr_ex has beyond ibv_qp_init_attr, in guest memory.
type QPExtra struct {
	_            structs.HostLayout
	StructSize   uint32 `abi:"struct_size" doc:"size of this struct as the guest knows it"`
	CompMask     uint32 `abi:"comp_mask" doc:"enum ibv_qp_init_attr_mask: CREATE_FLAGS 4, MAX_TSO_HEADER 8, SEND_OPS_FLAGS 64"`
	SendOpsFlags uint64 `abi:"send_ops_flags" enum:"send_ops" doc:"with SEND_OPS_FLAGS the operations that the QP is for, which are posted by builders"`
	CreateFlags  uint32 `abi:"create_flags" doc:"enum ibv_qp_create_flags"`
	MaxTSOHeader uint32 `abi:"max_tso_header" doc:"in bytes"`
	SourceQPN    uint32 `abi:"source_qpn" doc:"with IBV_QP_CREATE_SOURCE_QPN"`
	Reserved     uint32 `abi:"reserved" doc:"0"`
}

func qpExtraFunctions() []Function {
	ep := Param{"ep", HandleOf, "ep", ""}
	return []Function{
		{
			Name: "create_qp_ex", Since: v1_1, Capability: CapabilityCM,
			Doc: "Gives an endpoint a QP with extended attributes (rdma_create_qp_ex(3)), or makes one without an " +
				"endpoint " +
				"(ibv_create_qp_ex(3)) as create_qp does.",
			Params: []Param{owner(), {"pd", HandleOf, "pd", "of the endpoint's device"},
				{"qp_init_attr", In, "qp_init_attr", ""}, {"extra", In, "qp_extra", ""}},
			Result: "the QP's handle",
			Errors: "EINVAL: as create_qp, or a comp_mask that is not known. EOPNOTSUPP, ENOSYS: the device lacks " +
				"it, or one of the send operations.",
			binding: bind4((*Instance).createQPEx),
		},
		{
			Name: "init_qp_attr", Since: v1_1, Capability: CapabilityCM,
			Doc: "Writes what the connection manager would set to bring a QP of this connection to a state " +
				"(rdma_init_qp_attr(3)).",
			Params:  []Param{ep, {"state", U32, "qp_state", "INIT, RTR, RTS or ERR"}, {"attr", InOut, "qp_attr", ""}},
			Result:  "which attributes count, enum ibv_qp_attr_mask",
			Errors:  "EINVAL: no such state, or the endpoint is not so far.",
			binding: bind3((*Instance).initQPAttr),
		},
	}
}

func (i *Instance) createQPEx(epHandle, pdHandle Handle, attrAt, extraAt Pointer) int32 {
	extra, wrong := readSized[QPExtra](i, extraAt)
	if wrong != 0 {
		return i.badPointer("extra", wrong)
	}
	if extra.MaxTSOHeader > 1<<16-1 {
		return i.refuse(syscall.EINVAL, "max_tso_header is 65535 at most")
	}
	extended := func(attr rdmacore.QPInitAttr) rdmacore.QPInitAttrEx {
		mask := rdmacore.QPInitMask(extra.CompMask)
		if mask&rdmacore.QPInitSendOpsFlags != 0 {
			attr.SendOps = rdmacore.SendOps(extra.SendOpsFlags)
		}
		return rdmacore.QPInitAttrEx{QPInitAttr: attr, CompMask: mask, CreateFlags: extra.CreateFlags,
			SourceQPN: extra.SourceQPN, MaxTSOHeader: uint16(extra.MaxTSOHeader)}
	}
	return i.makeQP(epHandle, pdHandle, attrAt, func(id *rdmacore.ID, pd *rdmacore.PD, attr rdmacore.QPInitAttr) error {
		return id.CreateQPEx(pd, extended(attr))
	}, func(pd *rdmacore.PD, attr rdmacore.QPInitAttr) (*rdmacore.QP, error) {
		return pd.CreateQPEx(extended(attr))
	})
}

func (i *Instance) initQPAttr(handle Handle, state uint32, at Pointer) int32 {
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return i.badHandle(kindEP)
	}
	attr, mask, err := ep.id.InitQPAttr(rdmacore.QPState(int32(state)))
	if err != nil {
		return i.fail(err)
	}
	out := qpAttrOf(&attr)
	if wrong := writeSized(i, at, &out); wrong != 0 {
		return i.badPointer("attr", wrong)
	}
	return int32(mask)
}

func oneIf(truth bool) uint32 {
	if truth {
		return 1
	}
	return 0
}
