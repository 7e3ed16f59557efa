package hostfuncs

import (
	"structs"

	"rdmarun/rdmacore"
)

// MR is what a guest learns of its memory region.
type MR struct {
	_       structs.HostLayout
	Address uint64 `abi:"addr" doc:"of the region's first byte, as the peer names it in remote_addr: the guest's own pointer (with iWARP another)"`
	LKey    uint32 `abi:"lkey" doc:"for local SGEs"`
	RKey    uint32 `abi:"rkey" doc:"for the peer"`
}

func memoryFunctions() []Function {
	return []Function{
		{
			Name: "alloc_pd", Since: v1, Capability: CapabilityMemory,
			Doc: "Allocates a protection domain (ibv_alloc_pd(3)): QPs reach the memory regions of their own only.",
			Params: []Param{
				{
					"ep", HandleOf, "ep",
					"an endpoint of the device; 0 for the default device: " +
						"that of the role, otherwise the first with an " +
						"active port",
				}},
			Result:  "the PD's handle",
			Errors:  "ENODEV: there is no device, or the endpoint is not on one.",
			binding: bind1((*Instance).allocPD),
		},
		{
			Name: "dealloc_pd", Since: v1, Capability: CapabilityMemory,
			Doc:     "Frees a protection domain (ibv_dealloc_pd(3)).",
			Params:  []Param{{"pd", HandleOf, "pd", ""}},
			Errors:  "EBUSY: it has QPs or memory regions.",
			binding: bind1((*Instance).deallocPD),
		},
		{
			Name: "reg_mr", Since: v1, Capability: CapabilityMemory, Keeps: true,
			Doc: "Registers a range of the guest's own memory (ibv_reg_mr(3)). No copy is made: what the " +
				"peer writes appears there while the guest runs.",
			Params: []Param{
				{"pd", HandleOf, "pd", ""},
				{"start", In, "bytes", "the range's first byte"},
				{"length", U32, "", "of the range, in bytes"},
				{"access", U32, "access", "what may be done with it"},
				{"mr", Out, "mr", "the region's address and keys"},
			},
			Result:  "the memory region's handle",
			Errors:  "EINVAL: a remote right to write without LOCAL_WRITE. ENOMEM: the memory cannot be pinned.",
			binding: bind5((*Instance).regMR),
		},
		{
			Name: "dereg_mr", Since: v1, Capability: CapabilityMemory,
			Doc:     "Ends a registration (ibv_dereg_mr(3)).",
			Params:  []Param{{"mr", HandleOf, "mr", ""}},
			binding: bind1((*Instance).deregMR),
		},
	}
}

func (i *Instance) allocPD(epHandle Handle) int32 {
	device, failed := i.deviceOf(epHandle)
	if failed != 0 {
		return failed
	}
	return create(i, &i.pds, plainCost, device.AllocPD, (*rdmacore.PD).Dealloc)
}

func (i *Instance) deallocPD(handle Handle) int32 {
	return destroy(i, &i.pds, handle, (*rdmacore.PD).Dealloc)
}

func (i *Instance) regMR(pdHandle Handle, start Pointer, length, access uint32, out Pointer) int32 {
	return i.register(pdHandle, start, length, out, func(pd *rdmacore.PD) (*rdmacore.MR, error) {
		return pd.RegMRAt(i.region, int(start), int(length), rdmacore.Access(access))
	})
}

func (i *Instance) register(
	pdHandle Handle, start Pointer, length uint32, out Pointer, register func(*rdmacore.PD) (*rdmacore.MR, error),
) int32 {
	pd, ok := i.pds.get(pdHandle)
	if !ok {
		return i.badHandle(kindPD)
	}
	if _, wrong := i.bytes(start, length); wrong != 0 {
		return i.badPointer("the range", wrong)
	}
	keys, wrong := view[MR](i, out, 1)
	if wrong != 0 {
		return i.badPointer("mr", wrong)
	}
	handle := create(
		i, &i.mrs, mrCost(uint64(length)), func() (*rdmacore.MR, error) { return register(pd) }, (*rdmacore.MR).Dereg,
	)
	if handle > 0 {
		mr, _ := i.mrs.get(Handle(handle))
		keys[0] = MR{Address: mr.Address(), LKey: mr.LKey(), RKey: mr.RKey()}
	}
	return handle
}

func (i *Instance) deregMR(handle Handle) int32 {
	return destroy(i, &i.mrs, handle, (*rdmacore.MR).Dereg)
}

// destroy frees an object and makes its handle stale; an object that cannot be freed keeps it.
func destroy[T comparable](i *Instance, table *handleTable[T], handle Handle, free func(T) error) int32 {
	object, ok := table.get(handle)
	if !ok {
		return i.badHandle(table.kind)
	}
	if err := free(object); err != nil {
		return i.fail(err)
	}
	table.remove(handle)
	return 0
}
