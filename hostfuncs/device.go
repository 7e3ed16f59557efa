package hostfuncs

import (
	"net/netip"
	"syscall"

	"rdmarun/rdmacore"
)

func deviceFunctions() []Function {
	return []Function{{
		Name: "device_address", Since: v1, Capability: CapabilityDevice,
		Doc: "Writes an IP address by which rdma_cm reaches a device: what a peer connects to.",
		Params: []Param{
			{
				"ep", HandleOf, "ep",
				"an endpoint of the device; 0 for the default device: " +
					"that of the role, otherwise the first with an active port",
			},
			{"address", Out, "address", "its port is 0"},
		},
		Errors: "ENODEV: there is no device, or the endpoint is not on one. EADDRNOTAVAIL: the device has no IP " +
			"address.",
		binding: bind2((*Instance).deviceAddress),
	}}
}

// deviceOf is an endpoint's device, or the default one for handle 0, if the guest may use it.
func (i *Instance) deviceOf(handle Handle) (*rdmacore.Device, int32) {
	device, failed := i.deviceNamed(handle)
	if failed == 0 {
		failed = i.result(i.mayOpen(device))
	}
	return device, failed
}

func (i *Instance) deviceNamed(handle Handle) (*rdmacore.Device, int32) {
	if handle == 0 && i.device != nil {
		return i.device, 0
	}
	if handle == 0 {
		device, err := i.provider.DefaultDevice()
		if err != nil {
			return nil, i.fail(err)
		}
		return device, 0
	}
	if named, ok := i.devices.get(handle); ok {
		return named.device, 0
	}
	ep, ok := i.endpoints.get(handle)
	if !ok {
		return nil, i.badHandle(kindEP)
	}
	device := ep.id.Device()
	if device == nil {
		return nil, i.refuse(syscall.ENODEV, "the endpoint is not on a device yet")
	}
	return device, 0
}

func (i *Instance) deviceAddress(handle Handle, at Pointer) int32 {
	device, failed := i.deviceOf(handle)
	if failed != 0 {
		return failed
	}
	out, wrong := view[Address](i, at, 1)
	if wrong != 0 {
		return i.badPointer("address", wrong)
	}
	ip, err := device.Address()
	if err != nil {
		return i.fail(err)
	}
	out[0] = addressOf(netip.AddrPortFrom(ip, 0))
	return 0
}
