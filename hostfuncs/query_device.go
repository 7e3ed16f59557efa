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
}

func queryDeviceFunctions() []Function {
	return []Function{{
		Name: "query_device", Since: v1_3, Capability: CapabilityDevice,
		Doc: "Writes what a device can do (ibv_query_device(3)).",
		Params: []Param{
			{"ep", HandleOf, "ep", "whose device; 0 for the default device"},
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
	if errno := writeSized(i, at, &out); errno != 0 {
		return i.badPointer("attr", errno)
	}
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
		PhysicalPorts: uint32(attr.PhysicalPorts),
	}
	if attr.Atomic {
		out.Atomic = 1
	}
	return out
}
