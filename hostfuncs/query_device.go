package hostfuncs

import (
	"structs"
	"unsafe"

	"rdmarun/rdmacore"
)

// DeviceAttr is what query_device writes: the parts of ibv_device_attr that a program plans with.
type DeviceAttr struct {
	_               structs.HostLayout
	StructSize      uint32   `abi:"struct_size" doc:"size of this struct as the guest knows it, set before the call"`
	Atomic          uint32   `abi:"atomic" doc:"1 if there are atomic operations"`
	NodeGUID        uint64   `abi:"node_guid" doc:"as a number"`
	MaxMRSize       uint64   `abi:"max_mr_size" doc:"in bytes"`
	CapFlags        uint32   `abi:"device_cap_flags" doc:"enum ibv_device_cap_flags"`
	MaxQP           uint32   `abi:"max_qp" doc:""`
	MaxQPWR         uint32   `abi:"max_qp_wr" doc:"requests in one work queue"`
	MaxSGE          uint32   `abi:"max_sge" doc:"buffers of a request"`
	MaxSGERead      uint32   `abi:"max_sge_rd" doc:"buffers of an RDMA READ"`
	MaxCQ           uint32   `abi:"max_cq" doc:""`
	MaxCQE          uint32   `abi:"max_cqe" doc:"completions in one CQ"`
	MaxMR           uint32   `abi:"max_mr" doc:""`
	MaxPD           uint32   `abi:"max_pd" doc:""`
	MaxQPRdAtom     uint32   `abi:"max_qp_rd_atom" doc:"responder_resources at most"`
	MaxQPInitRdAtom uint32   `abi:"max_qp_init_rd_atom" doc:"initiator_depth at most"`
	MaxSRQ          uint32   `abi:"max_srq" doc:"0: there are none"`
	MaxSRQWR        uint32   `abi:"max_srq_wr" doc:""`
	MaxSRQSGE       uint32   `abi:"max_srq_sge" doc:""`
	MaxAH           uint32   `abi:"max_ah" doc:""`
	MaxMW           uint32   `abi:"max_mw" doc:"0: there are none"`
	MaxMulticast    uint32   `abi:"max_mcast_grp" doc:"0: there are none"`
	PhysicalPorts   uint32   `abi:"phys_port_cnt" doc:""`
	Name            [64]byte `abi:"name" doc:"of the device, ends with a zero"`

	// Since 1.4; 0 on a device that has ibv_query_device alone.
	CompletionTimestampMask uint64 `abi:"completion_timestamp_mask" doc:"bits that count of timestamp.raw; 0: it has no time stamps"`
	CoreClock               uint64 `abi:"hca_core_clock" doc:"kHz of the clock of timestamp.raw and query_rt_values"`
	CapFlagsEx              uint64 `abi:"device_cap_flags_ex" doc:"device_cap_flags, and those beyond 32 bits"`
	ODPCaps                 uint64 `abi:"odp_general_caps" doc:"on-demand paging, enum ibv_odp_general_caps"`
	ODPCapsRC               uint32 `abi:"rc_odp_caps" doc:"enum ibv_odp_transport_cap_bits"`
	ODPCapsUC               uint32 `abi:"uc_odp_caps" doc:""`
	ODPCapsUD               uint32 `abi:"ud_odp_caps" doc:""`
	PCIAtomicFetchAdd       uint16 `abi:"pci_atomic_fetch_add" doc:"enum ibv_pci_atomic_op_size"`
	PCIAtomicSwap           uint16 `abi:"pci_atomic_swap" doc:""`
	PCIAtomicCompareSwap    uint16 `abi:"pci_atomic_compare_swap" doc:""`
	MaxModerationCount      uint16 `abi:"max_cq_count" doc:"of moderate_cq"`
	MaxModerationPeriod     uint16 `abi:"max_cq_period" doc:"of moderate_cq, in microseconds"`
	Reserved                uint16 `abi:"reserved" doc:""`
	PhysicalPortsEx         uint32 `abi:"phys_port_cnt_ex" doc:"ports, where they are more than phys_port_cnt can count"`
	MaxTSO                  uint32 `abi:"max_tso" doc:"bytes of a message that it segments"`
	MaxDMSize               uint64 `abi:"max_dm_size" doc:"bytes of its own memory"`
}

func queryDeviceFunctions() []Function {
	return []Function{{
		Name: "query_rt_values", Since: v1_4, Capability: CapabilityDevice,
		Doc: "Reads the device's clock, from which timestamp.raw comes (ibv_query_rt_values_ex(3)).",
		Params: []Param{
			{"ep", HandleOf, "ep", "an endpoint of the device; 0 for the default device"},
			{"raw_clock", Out, "u64", "ticks; device_attr.hca_core_clock thousand of them are a second"}},
		Errors:  "EOPNOTSUPP: the device does not show it. ENODEV: there is no device, or the endpoint is not on one.",
		binding: bind2((*Instance).queryRTValues),
	}, {
		Name: "query_device", Since: v1_3, Capability: CapabilityDevice,
		Doc: "Writes what a device can do (ibv_query_device(3), ibv_query_device_ex(3)).",
		Params: []Param{
			{"ep", HandleOf, "ep", "an endpoint of the device; 0 for the default device"},
			{"attr", InOut, "device_attr", ""}},
		Errors:  "ENODEV: there is no device, or the endpoint is not on one. EIO: it was removed.",
		binding: bind2((*Instance).queryDevice),
	}}
}

func (i *Instance) queryDevice(handle Handle, at Pointer) int32 {
	device, failed := i.deviceOf(handle)
	if failed != 0 {
		return failed
	}
	attr, err := device.Attr()
	if err != nil {
		return i.fail(err)
	}
	out := deviceAttrOf(&attr)
	copy(out.Name[:len(out.Name)-1], device.Name())
	if wrong := writeSized(i, at, &out); wrong != 0 {
		return i.badPointer("attr", wrong)
	}
	return 0
}

func (i *Instance) queryRTValues(handle Handle, at Pointer) int32 {
	device, failed := i.deviceOf(handle)
	if failed != 0 {
		return failed
	}
	out, wrong := view[uint64](i, at, 1)
	if wrong != 0 {
		return i.badPointer("raw_clock", wrong)
	}
	raw, err := device.RawClock()
	if err != nil {
		return i.fail(err)
	}
	out[0] = raw
	return 0
}

func deviceAttrOf(attr *rdmacore.DeviceAttr) DeviceAttr {
	out := DeviceAttr{
		StructSize: uint32(unsafe.Sizeof(DeviceAttr{})),
		NodeGUID:   attr.NodeGUID, MaxMRSize: attr.MaxMRSize, CapFlags: attr.CapFlags,
		MaxQP: uint32(attr.MaxQP), MaxQPWR: uint32(attr.MaxQPWR), MaxSGE: uint32(attr.MaxSGE),
		MaxSGERead: uint32(attr.MaxSGERead), MaxCQ: uint32(attr.MaxCQ), MaxCQE: uint32(attr.MaxCQE),
		MaxMR: uint32(attr.MaxMR), MaxPD: uint32(attr.MaxPD),
		MaxQPRdAtom: uint32(attr.MaxQPRdAtom), MaxQPInitRdAtom: uint32(attr.MaxQPInitRdAtom),
		MaxSRQ: uint32(attr.MaxSRQ), MaxSRQWR: uint32(attr.MaxSRQWR), MaxSRQSGE: uint32(attr.MaxSRQSGE),
		MaxAH: uint32(attr.MaxAH), MaxMW: uint32(attr.MaxMW), MaxMulticast: uint32(attr.MaxMulticast),
		PhysicalPorts:           uint32(attr.PhysicalPorts),
		CompletionTimestampMask: attr.CompletionTimestampMask, CoreClock: attr.CoreClock, CapFlagsEx: attr.CapFlagsEx,
		ODPCaps: attr.ODPCaps, ODPCapsRC: attr.ODPCapsRC, ODPCapsUC: attr.ODPCapsUC, ODPCapsUD: attr.ODPCapsUD,
		PCIAtomicFetchAdd: attr.PCIAtomicFetchAdd, PCIAtomicSwap: attr.PCIAtomicSwap,
		PCIAtomicCompareSwap: attr.PCIAtomicCompareSwap,
		MaxModerationCount:   attr.MaxModerationCount, MaxModerationPeriod: attr.MaxModerationPeriod,
		PhysicalPortsEx: uint32(attr.PhysicalPortsEx), MaxTSO: attr.MaxTSO, MaxDMSize: attr.MaxDMSize,
	}
	if attr.Atomic {
		out.Atomic = 1
	}
	return out
}
