package hostfuncs

import (
	"math"
	"structs"
	"syscall"

	"rdmarun/rdmacore"
)

// MRChange is a change of a memory region in guest memory.
type MRChange struct {
	_          structs.HostLayout
	StructSize uint32 `abi:"struct_size" doc:"size of this struct as the guest knows it"`
	Flags      uint32 `abi:"flags" enum:"rereg_flags" doc:"which of the other fields count"`
	PD         Handle `abi:"pd" doc:"pd handle; with PD"`
	Access     uint32 `abi:"access" enum:"access" doc:"with ACCESS"`
	Start      uint64 `abi:"addr" doc:"the guest's pointer to the first byte; with TRANSLATION"`
	Length     uint64 `abi:"length" doc:"in bytes; with TRANSLATION"`
}

func regionFunctions() []Function {
	return []Function{
		{
			Name: "reg_mr_iova", Since: v1_4, Capability: CapabilityMemory, Keeps: true,
			Doc: "Registers a range of the guest's own memory under an address of its choice, by which the peer " +
				"names the " +
				"first byte (ibv_reg_mr_iova(3)). Local SGEs take the guest's pointers, which are others: they want " +
				"a region of reg_mr.",
			Params: []Param{
				{"pd", HandleOf, "pd", ""},
				{"start", In, "bytes", "the range's first byte"},
				{"length", U32, "", "of the range, in bytes"},
				{"iova", I64, "", "the address; a device may want the same offset in a page as that of the memory"},
				{"access", U32, "access", "what may be done with it"},
				{"mr", Out, "mr", "the region's address, which is iova, and keys"},
			},
			Result: "the memory region's handle",
			Errors: "EINVAL: a remote right to write without LOCAL_WRITE, or an address with which the range wraps " +
				"around. ENOMEM: the memory cannot be pinned.",
			binding: bind6((*Instance).regMRIova),
		},
		{
			Name: "rereg_mr", Since: v1_4, Capability: CapabilityMemory, Keeps: true,
			Doc: "Changes a memory region that requests may be using (ibv_rereg_mr(3)): after the return, requests " +
				"no longer reach the old memory. Its keys may have changed.",
			Params: []Param{{"mr", HandleOf, "mr", ""}, {"change", In, "mr_change", "what it shall be"},
				{"keys", Out, "mr", "the region's address and keys"}},
			Errors: "EINVAL: no flag, an empty range, or a remote right to write without LOCAL_WRITE. EBUSY: a " +
				"window is bound to it. " +
				"EOPNOTSUPP: the device cannot; dereg_mr and reg_mr do.",
			binding: bind3((*Instance).reregMR),
		},
	}
}

func (i *Instance) regMRIova(
	pdHandle Handle, start Pointer, length uint32, iova int64, access uint32, out Pointer,
) int32 {
	return i.register(pdHandle, start, length, out, func(pd *rdmacore.PD) (*rdmacore.MR, error) {
		return pd.RegMRIova(i.region, int(start), int(length), uint64(iova), rdmacore.Access(access))
	})
}

func (i *Instance) reregMR(handle Handle, at, out Pointer) int32 {
	mr, ok := i.mrs.get(handle)
	if !ok {
		return i.badHandle(kindMR)
	}
	change, wrong := readSized[MRChange](i, at)
	if wrong != 0 {
		return i.badPointer("change", wrong)
	}
	keys, wrong := view[MR](i, out, 1)
	if wrong != 0 {
		return i.badPointer("keys", wrong)
	}
	flags := rdmacore.ReregFlags(int32(change.Flags))
	var pd *rdmacore.PD
	if flags&rdmacore.ReregPD != 0 {
		if pd, ok = i.pds.get(change.PD); !ok {
			return i.badHandle(kindPD)
		}
	}
	if flags&rdmacore.ReregTranslation != 0 {
		if change.Start > math.MaxUint32 || change.Length > math.MaxUint32 {
			return i.refuse(syscall.EFAULT, "addr and length are of the guest's own memory")
		}
		if _, wrong := i.bytes(Pointer(change.Start), uint32(change.Length)); wrong != 0 {
			return i.badPointer("the range", wrong)
		}
	}
	cost := i.mrs.slot(handle).cost
	if flags&rdmacore.ReregTranslation != 0 {
		cost = mrCost(change.Length)
	}
	if failed := resize(i, &i.mrs, handle, cost, func() error {
		return mr.ReregAt(flags, pd, i.region, int(change.Start), int(change.Length), rdmacore.Access(change.Access))
	}); failed != 0 {
		return failed
	}
	keys[0] = MR{Address: mr.Address(), LKey: mr.LKey(), RKey: mr.RKey()}
	return 0
}
