package hostfuncs

import (
	"structs"

	"rdmarun/rdmacore"
)

// MWBind is the binding of a memory window in guest memory.
type MWBind struct {
	_       structs.HostLayout
	WRID    uint64 `abi:"wr_id" doc:"comes back in the completion"`
	Address uint64 `abi:"addr" doc:"the window's first byte, as mr.addr counts"`
	Length  uint64 `abi:"length" doc:"in bytes; 0: nothing any more (type 1)"`
	MR      Handle `abi:"mr" doc:"mr handle, with access MW_BIND; 0 with length 0"`
	Access  uint32 `abi:"access" enum:"access" doc:"what the peer may do through the window"`
	Flags   uint32 `abi:"send_flags" enum:"send_flags" doc:""`
	RKey    uint32 `abi:"rkey" doc:"written: the new key, good once the request has completed"`
}

func mwFunctions() []Function {
	mw := Param{"mw", HandleOf, "mw", ""}
	return []Function{
		{
			Name: "alloc_mw", Since: v1_2, Capability: CapabilityMemory,
			Doc: "Allocates a memory window, bound to nothing (ibv_alloc_mw(3)).",
			Params: []Param{{"pd", HandleOf, "pd", ""},
				{"mw_type", U32, "", "1: good for every QP of the PD; 2: for the one that binds it"}},
			Result:  "the window's handle",
			Errors:  "EINVAL: no such type. EOPNOTSUPP: the device has no windows.",
			binding: bind2((*Instance).allocMW),
		},
		{
			Name: "bind_mw", Since: v1_2, Capability: CapabilityWork,
			Doc:    "Posts a request to bind a window to a part of a region (ibv_bind_mw(3)).",
			Params: []Param{{"qp", HandleOf, "qp", ""}, mw, {"bind", InOut, "mw_bind", ""}},
			Errors: "EINVAL: QP, window and region are not of one PD, or the QP's state does not allow it. " +
				"EOPNOTSUPP: of " +
				"type 2, and BIND_MW is not among the send operations of the QP.",
			binding: bind3((*Instance).bindMW),
		},
		{
			Name: "dealloc_mw", Since: v1_2, Capability: CapabilityMemory,
			Doc:     "Frees a memory window; its key ends (ibv_dealloc_mw(3)).",
			Params:  []Param{mw},
			binding: bind1((*Instance).deallocMW),
		},
	}
}

func (i *Instance) allocMW(pdHandle Handle, kind uint32) int32 {
	pd, ok := i.pds.get(pdHandle)
	if !ok {
		return i.badHandle(kindPD)
	}
	return create(i, &i.mws, plainCost, func() (*rdmacore.MW, error) {
		return pd.AllocMW(
			rdmacore.MWType(int32(kind)),
		)
	},
		(*rdmacore.MW).Dealloc)
}

func (i *Instance) bindMW(qpHandle, handle Handle, at Pointer) int32 {
	qp, ok := i.qps.get(qpHandle)
	if !ok {
		return i.badHandle(kindQP)
	}
	mw, ok := i.mws.get(handle)
	if !ok {
		return i.badHandle(kindMW)
	}
	binds, wrong := view[MWBind](i, at, 1)
	if wrong != 0 {
		return i.badPointer("bind", wrong)
	}
	wish := binds[0] // the guest's memory may change meanwhile
	bind := rdmacore.MWBind{WRID: wish.WRID, Address: wish.Address, Length: wish.Length,
		Access: rdmacore.Access(wish.Access), Flags: rdmacore.SendFlags(wish.Flags)}
	if wish.MR != 0 {
		if bind.MR, ok = i.mrs.get(wish.MR); !ok {
			return i.badHandle(kindMR)
		}
	}
	if err := qp.BindMW(mw, bind); err != nil {
		return i.fail(err)
	}
	binds[0].RKey = mw.RKey()
	return 0
}

func (i *Instance) deallocMW(handle Handle) int32 {
	return destroy(i, &i.mws, handle, (*rdmacore.MW).Dealloc)
}
