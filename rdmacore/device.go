package rdmacore

// #include "core/core.h"
import "C"

import (
	"os"
	"syscall"
	"unsafe"
)

// Device is an RDMA device as librdmacm has opened it.  It belongs to its provider.
type Device struct {
	c        *C.struct_ibv_context
	provider *Provider
	async    mailbox[AsyncEvent]
}

// Devices lists the devices (rdma_get_devices(3)); none is not an error.
func (p *Provider) Devices() ([]*Device, error) {
	const op = "rdma_get_devices"
	if p == nil || p.c == nil {
		return nil, closed(op, "provider")
	}
	p.devices.Lock()
	defer p.devices.Unlock()
	if p.devices.known != nil {
		return append([]*Device(nil), p.devices.known...), nil
	}
	var list **C.struct_ibv_context
	var count C.int
	if result := C.core_get_devices(p.c, &list, &count); result < 0 {
		errno := syscall.Errno(-result)
		if errno == syscall.ENODEV {
			return nil, nil
		}
		return nil, &Error{Op: op, Errno: errno, Why: deviceReason(op, errno)}
	}
	if count == 0 {
		C.core_free_devices(p.c, list)
		return nil, nil
	}
	p.devices.lists = append(p.devices.lists, list)
	if p.devices.byHandle == nil {
		p.devices.byHandle = make(map[*C.struct_ibv_context]*Device)
	}
	for _, context := range unsafe.Slice(list, int(count)) {
		device := p.newDevice(context)
		p.devices.known = append(p.devices.known, device)
		p.devices.byHandle[context] = device
	}
	return append([]*Device(nil), p.devices.known...), nil
}

// deviceReason says what to do about the errors of a missing device or driver.
func deviceReason(op string, errno syscall.Errno) string {
	switch errno {
	case syscall.ENODEV, syscall.ENOENT, syscall.ENXIO:
		if devices, err := os.ReadDir("/sys/class/infiniband"); err == nil && len(devices) != 0 {
			return "the kernel has the RDMA device " + devices[0].Name() + ", but programs cannot reach it; " +
				"load the modules ib_uverbs and rdma_ucm (modprobe), and install ibverbs-providers"
		}
		return "there is no RDMA device; load its driver, make a software one " +
			"(rdma link add rxe0 type rxe netdev eth0), or use the provider soft"
	case syscall.EACCES, syscall.EPERM:
		return "no access to /dev/infiniband; add yourself to the group of its files (often rdma), or be root"
	}
	return unsupported(op, errno)
}

// DefaultDevice is the first device with an active port.  ENODEV, with what to do, when there is none.
func (p *Provider) DefaultDevice() (*Device, error) {
	const op = "default device"
	devices, err := p.Devices()
	if err != nil {
		return nil, err
	}
	for _, device := range devices {
		if number, err := device.activePort(); err == nil && number != 0 {
			return device, nil
		}
	}
	if len(devices) == 0 {
		return nil, &Error{Op: op, Errno: syscall.ENODEV, Why: deviceReason(op, syscall.ENODEV)}
	}
	return nil, fail(op, syscall.ENODEV,
		"no port of %s is active; bring up its network interface or cable", devices[0].Name())
}

// byHandle finds the device of a context, nil when there is none.
func (p *Provider) byHandle(context *C.struct_ibv_context) *Device {
	if context == nil {
		return nil
	}
	if _, err := p.Devices(); err != nil {
		return nil
	}
	p.devices.Lock()
	defer p.devices.Unlock()
	return p.devices.byHandle[context]
}

func (p *Provider) freeDevices() {
	p.devices.Lock()
	defer p.devices.Unlock()
	for _, device := range p.devices.byHandle {
		device.async.waiter.close()
		device.c = nil
	}
	for _, list := range p.devices.lists {
		C.core_free_devices(p.c, list)
	}
	p.devices.lists, p.devices.known, p.devices.byHandle = nil, nil, nil
}

// forgetDevices has the next Devices look again.
func (p *Provider) forgetDevices() {
	p.devices.Lock()
	p.devices.known = nil
	p.devices.Unlock()
}

func (d *Device) open() bool { return d != nil && d.c != nil }

// Provider returns the provider that the device belongs to.
func (d *Device) Provider() *Provider {
	if d == nil {
		return nil
	}
	return d.provider
}

// Name is the kernel's name of the device, for example "mlx5_0".
func (d *Device) Name() string {
	if !d.open() {
		return ""
	}
	return C.GoString(&d.c.device.name[0])
}

// IWARP tells whether the device speaks iWARP (RFC 5040, over TCP) rather than InfiniBand or RoCE.
func (d *Device) IWARP() bool {
	return d.open() && d.c.device.transport_type == C.IBV_TRANSPORT_IWARP
}

// GUID is the node GUID as a number in host order.
func (d *Device) GUID() uint64 {
	if !d.open() {
		return 0
	}
	return uint64(C.core_device_guid(d.provider.c, d.c))
}
