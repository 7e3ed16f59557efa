package hostfuncs

import (
	"structs"
	"syscall"

	"rdmarun/rdmacore"
)

// PortAttr is what query_port writes: the parts of ibv_port_attr that a program plans with.
type PortAttr struct {
	_          structs.HostLayout
	StructSize uint32 `abi:"struct_size" doc:"size of this struct as the guest knows it, set before the call"`
	State      uint32 `abi:"state" enum:"port_state" doc:""`
	LinkLayer  uint32 `abi:"link_layer" enum:"link_layer" doc:""`
	ActiveMTU  uint32 `abi:"active_mtu" doc:"in bytes"`
	MaxMTU     uint32 `abi:"max_mtu" doc:"in bytes"`
	MaxMsgSize uint32 `abi:"max_msg_sz" doc:"of a message, in bytes"`
	LID        uint32 `abi:"lid" doc:"local identifier, of InfiniBand"`
	GIDs       uint32 `abi:"gids" doc:"entries of the GID table in use"`
	Rate       uint32 `abi:"rate" doc:"nominal, width times speed, in Mbit/s"`
	Reserved   uint32 `abi:"reserved" doc:"0"`
}

func portFunctions() []Function {
	return []Function{{
		Name: "query_port", Since: v1_4, Capability: CapabilityDevice,
		Doc: "Writes what a port of a device is (ibv_query_port(3)).",
		Params: []Param{
			{"ep", HandleOf, "ep", "an endpoint of the device; 0 for the default device"},
			{"port", U32, "", "its number, from 1"},
			{"attr", InOut, "port_attr", ""}},
		Errors: "EINVAL: the device has no such port. ENODEV: there is no device, or the endpoint is not on one. " +
			"EIO: it was removed.",
		binding: bind3((*Instance).queryPort),
	}}
}

func (i *Instance) queryPort(handle Handle, number uint32, at Pointer) int32 {
	device, failed := i.deviceOf(handle)
	if failed != 0 {
		return failed
	}
	ports, err := device.Ports()
	if err != nil {
		return i.fail(err)
	}
	for _, port := range ports {
		if uint32(port.Number) != number {
			continue
		}
		out := portAttrOf(&port)
		if wrong := writeSized(i, at, &out); wrong != 0 {
			return i.badPointer("attr", wrong)
		}
		return 0
	}
	return i.refuse(syscall.EINVAL, "the device has no such port")
}

func portAttrOf(port *rdmacore.Port) PortAttr {
	return PortAttr{
		State: uint32(port.State), LinkLayer: uint32(port.LinkLayer), ActiveMTU: uint32(port.ActiveMTU),
		MaxMTU: uint32(port.MaxMTU), MaxMsgSize: port.MaxMsg, LID: uint32(port.LID), GIDs: uint32(len(port.GIDs)),
		Rate: uint32(port.RateGbps * 1000),
	}
}
