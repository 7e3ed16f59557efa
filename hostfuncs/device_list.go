package hostfuncs

import (
	"structs"
	"syscall"

	"rdmarun/rdmacore"
)

// GIDEntry is ibv_gid_entry in guest memory, without the number of the host's interface.
type GIDEntry struct {
	_        structs.HostLayout
	GID      [16]byte `abi:"gid" doc:"in network byte order"`
	Index    uint32   `abi:"gid_index" doc:"in the table of the port"`
	Port     uint32   `abi:"port_num" doc:"of the device"`
	Type     uint32   `abi:"gid_type" enum:"gid_type" doc:""`
	Reserved uint32   `abi:"reserved" doc:"0"`
}

// The values of enum ibv_gid_type.
const (
	gidTypeIB = iota
	gidTypeRoCEv1
	gidTypeRoCEv2
)

func deviceListFunctions() []Function {
	device := Param{"device", HandleOf, "device", ""}
	return []Function{
		{
			Name: "get_device_list", Since: v1_5, Capability: CapabilityDevice,
			Doc:     "Counts the devices (ibv_get_device_list(3)), for open_device.",
			Result:  "how many there are, which may be none",
			binding: bind0((*Instance).getDeviceList),
		},
		{
			Name: "open_device", Since: v1_5, Capability: CapabilityDevice,
			Doc: "Names a device (ibv_open_device(3)). Whatever takes an endpoint to say which device is meant " +
				"takes this as well. " +
				"query_device has its name.",
			Params:  []Param{{"index", U32, "", "in the list, from 0"}},
			Result:  "the device's handle",
			Errors:  "ENODEV: there is no such device.",
			binding: bind1((*Instance).openDevice),
		},
		{
			Name: "close_device", Since: v1_5, Capability: CapabilityDevice,
			Doc:     "Forgets the name of a device (ibv_close_device(3)). Objects that were made on it stay.",
			Params:  []Param{device},
			binding: bind1((*Instance).closeDevice),
		},
		{
			Name: "query_gid_ex", Since: v1_5, Capability: CapabilityDevice,
			Doc: "Writes an entry of a port's table of GIDs (ibv_query_gid_ex(3)).",
			Params: []Param{
				{"ep", HandleOf, "ep", "an endpoint of the device; 0 for the default device"},
				{"port", U32, "", "its number, from 1"},
				{"index", U32, "", "in the table, from 0"},
				{"entry", Out, "gid_entry", ""}},
			Errors: "EINVAL: the device has no such port. ENODATA: the entry is empty. ENODEV: there is no device, " +
				"or the endpoint is not on one.",
			binding: bind4((*Instance).queryGIDEx),
		},
	}
}

func (i *Instance) getDeviceList() int32 {
	devices, err := i.provider.Devices()
	if err != nil {
		return i.fail(err)
	}
	return int32(len(devices))
}

// opened is a device as a guest has it: several handles may be of one.
type opened struct{ device *rdmacore.Device }

func (*opened) close() error { return nil }

func (i *Instance) openDevice(index uint32) int32 {
	devices, err := i.provider.Devices()
	if err != nil {
		return i.fail(err)
	}
	if uint64(index) >= uint64(len(devices)) {
		return i.refuse(syscall.ENODEV, "there is no device of that index")
	}
	if err := i.mayOpen(devices[index]); err != nil {
		return i.fail(err)
	}
	return create(
		i, &i.devices, plainCost, func() (*opened, error) { return &opened{devices[index]}, nil }, (*opened).close,
	)
}

func (i *Instance) closeDevice(handle Handle) int32 {
	return destroy(i, &i.devices, handle, (*opened).close)
}

func (i *Instance) queryGIDEx(handle Handle, number, index uint32, at Pointer) int32 {
	device, failed := i.deviceOf(handle)
	if failed != 0 {
		return failed
	}
	out, wrong := view[GIDEntry](i, at, 1)
	if wrong != 0 {
		return i.badPointer("entry", wrong)
	}
	ports, err := device.Ports()
	if err != nil {
		return i.fail(err)
	}
	for _, port := range ports {
		if uint32(port.Number) != number {
			continue
		}
		for _, gid := range port.GIDs {
			if uint32(gid.Index) == index {
				out[0] = GIDEntry{GID: gid.Raw.As16(), Index: index, Port: number, Type: gidType(gid.Type)}
				return 0
			}
		}
		return i.refuse(syscall.ENODATA, "the entry is empty")
	}
	return i.refuse(syscall.EINVAL, "the device has no such port")
}

func gidType(name string) uint32 {
	switch name {
	case "RoCE v1":
		return gidTypeRoCEv1
	case "RoCE v2":
		return gidTypeRoCEv2
	}
	return gidTypeIB
}
