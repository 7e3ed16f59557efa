package rdmacore

// #include "core/core.h"
// #include "provider/newer.h"
import "C"

import (
	"math"
	"os"
	"syscall"
	"unsafe"
)

// Device is an RDMA device as librdmacm has opened it.  It belongs to its provider.
type Device struct {
	c        *C.struct_ibv_context
	provider *Provider
	async    mailbox[AsyncEvent, AsyncEvent]
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

// deviceReason is the remedy for the errors of a missing device or driver.
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

// IWARP reports whether the device speaks iWARP (RFC 5040, over TCP) rather than InfiniBand or RoCE.
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

// DeviceAttr is what a device can do (ibv_query_device(3), ibv_query_device_ex(3)).
type DeviceAttr struct {
	FirmwareVersion string
	NodeGUID        uint64
	SystemImageGUID uint64
	VendorID        uint32
	VendorPartID    uint32
	HardwareVersion uint32
	MaxMRSize       uint64 // bytes
	PageSizeCap     uint64 // a bit for each page size
	CapFlags        uint32 // enum ibv_device_cap_flags
	MaxQP           int
	MaxQPWR         int // work requests in one work queue
	MaxSGE          int
	MaxSGERead      int // entries of an RDMA READ
	MaxCQ           int
	MaxCQE          int
	MaxMR           int
	MaxPD           int
	MaxQPRdAtom     int // as target: responder_resources
	MaxQPInitRdAtom int // as initiator: initiator_depth
	MaxSRQ          int
	MaxSRQWR        int
	MaxSRQSGE       int
	MaxAH           int
	MaxMW           int
	MaxMulticast    int
	MaxPkeys        int
	LocalCAAckDelay int // 4.096 us * 2^n
	PhysicalPorts   int
	Atomic          bool

	// Beyond ibv_query_device; all 0 on a device that has only that.
	CompletionTimestampMask uint64 // the bits that count of a completion's raw time stamp; 0: there is none
	CoreClock               uint64 // kHz of that clock
	CapFlagsEx              uint64 // CapFlags and those beyond 32 bits
	PhysicalPortsEx         int    // without the limit of PhysicalPorts, 255
	ODPCaps                 uint64 // on-demand paging: enum ibv_odp_general_caps
	ODPCapsRC               uint32 // what of RC can do it: enum ibv_odp_transport_cap_bits
	ODPCapsUC               uint32
	ODPCapsUD               uint32
	PCIAtomicFetchAdd       uint16 // enum ibv_pci_atomic_op_size
	PCIAtomicSwap           uint16
	PCIAtomicCompareSwap    uint16
	MaxModerationCount      uint16 // completions that one event can stand for (CQ.Moderate)
	MaxModerationPeriod     uint16 // microseconds
	MaxDMSize               uint64 // bytes of the device's own memory
	MaxTSO                  uint32 // bytes of a message that the device segments
}

// DeviceCap are bits of DeviceAttr.CapFlagsEx (device_cap_flags_ex of ibv_query_device_ex(3)).
type DeviceCap uint64

// Those that rdma-core has named since version 44.
const (
	CapFlushGlobal     DeviceCap = C.CORE_CAP_FLUSH_GLOBAL
	CapFlushPersistent DeviceCap = C.CORE_CAP_FLUSH_PERSISTENT
	CapAtomicWrite     DeviceCap = C.CORE_CAP_ATOMIC_WRITE
)

// Can reports whether the device has every one of caps.
func (a *DeviceAttr) Can(caps DeviceCap) bool { return DeviceCap(a.CapFlagsEx)&caps == caps }

// Attr asks the device for its limits (ibv_query_device_ex(3), where it has that).
func (d *Device) Attr() (DeviceAttr, error) {
	const op = "ibv_query_device_ex"
	if !d.open() {
		return DeviceAttr{}, closed(op, "device")
	}
	var ex C.struct_ibv_device_attr_ex
	if err := check(op, int(C.core_query_device_ex(d.provider.c, d.c, &ex))); err != nil {
		return DeviceAttr{}, err
	}
	attr := plainAttr(&ex.orig_attr)
	attr.extend(&ex)
	return attr, nil
}

func plainAttr(c *C.struct_ibv_device_attr) DeviceAttr {
	return DeviceAttr{
		FirmwareVersion: C.GoString(&c.fw_ver[0]),
		NodeGUID:        fromNetworkOrder(uint64(c.node_guid)),
		SystemImageGUID: fromNetworkOrder(uint64(c.sys_image_guid)),
		VendorID:        uint32(c.vendor_id),
		VendorPartID:    uint32(c.vendor_part_id),
		HardwareVersion: uint32(c.hw_ver),
		MaxMRSize:       uint64(c.max_mr_size),
		PageSizeCap:     uint64(c.page_size_cap),
		CapFlags:        uint32(c.device_cap_flags),
		MaxQP:           int(c.max_qp),
		MaxQPWR:         int(c.max_qp_wr),
		MaxSGE:          int(c.max_sge),
		MaxSGERead:      int(c.max_sge_rd),
		MaxCQ:           int(c.max_cq),
		MaxCQE:          int(c.max_cqe),
		MaxMR:           int(c.max_mr),
		MaxPD:           int(c.max_pd),
		MaxQPRdAtom:     int(c.max_qp_rd_atom),
		MaxQPInitRdAtom: int(c.max_qp_init_rd_atom),
		MaxSRQ:          int(c.max_srq),
		MaxSRQWR:        int(c.max_srq_wr),
		MaxSRQSGE:       int(c.max_srq_sge),
		MaxAH:           int(c.max_ah),
		MaxMW:           int(c.max_mw),
		MaxMulticast:    int(c.max_mcast_grp),
		MaxPkeys:        int(c.max_pkeys),
		LocalCAAckDelay: int(c.local_ca_ack_delay),
		PhysicalPorts:   int(c.phys_port_cnt),
		Atomic:          c.atomic_cap != C.IBV_ATOMIC_NONE,
	}
}

func (a *DeviceAttr) extend(c *C.struct_ibv_device_attr_ex) {
	a.CompletionTimestampMask = uint64(c.completion_timestamp_mask)
	a.CoreClock = uint64(c.hca_core_clock)
	a.CapFlagsEx = uint64(c.device_cap_flags_ex)
	a.PhysicalPortsEx = int(c.phys_port_cnt_ex)
	a.ODPCaps = uint64(c.odp_caps.general_caps)
	a.ODPCapsRC = uint32(c.odp_caps.per_transport_caps.rc_odp_caps)
	a.ODPCapsUC = uint32(c.odp_caps.per_transport_caps.uc_odp_caps)
	a.ODPCapsUD = uint32(c.odp_caps.per_transport_caps.ud_odp_caps)
	a.PCIAtomicFetchAdd = uint16(c.pci_atomic_caps.fetch_add)
	a.PCIAtomicSwap = uint16(c.pci_atomic_caps.swap)
	a.PCIAtomicCompareSwap = uint16(c.pci_atomic_caps.compare_swap)
	a.MaxModerationCount = uint16(c.cq_mod_caps.max_cq_count)
	a.MaxModerationPeriod = uint16(c.cq_mod_caps.max_cq_period)
	a.MaxDMSize = uint64(c.max_dm_size)
	a.MaxTSO = uint32(c.tso_caps.max_tso)
}

// RawClock reads the device's clock now, in the ticks of a completion's raw time stamp: DeviceAttr.CoreClock
// thousand of them make a second (ibv_query_rt_values_ex(3)).  EOPNOTSUPP on a device that does not show it.
func (d *Device) RawClock() (uint64, error) {
	const op = "ibv_query_rt_values_ex"
	if !d.open() {
		return 0, closed(op, "device")
	}
	var raw C.uint64_t
	if err := check(op, int(C.core_query_rt_values(d.c, &raw))); err != nil {
		return 0, err
	}
	return uint64(raw), nil
}

// Index is the kernel's number of the device; -1 for a device without one, such as soft's
// (ibv_get_device_index(3)).
func (d *Device) Index() int {
	if !d.open() {
		return -1
	}
	return int(C.core_device_index(d.provider.c, d.c))
}

// PKey is the partition key at an index of a port's table (ibv_query_pkey(3)).  Its highest bit is set for a full
// member, and not for a limited one.  ENOENT for a port or an index that there is not.
func (d *Device) PKey(port, index int) (uint16, error) {
	const op = "ibv_query_pkey"
	if err := d.checkPort(op, port); err != nil {
		return 0, err
	}
	if index < 0 || index > math.MaxInt32 {
		return 0, fail(op, syscall.EINVAL, "index %d of the table of partition keys", index)
	}
	var key C.uint16_t
	if err := check(op, int(C.core_query_pkey(d.provider.c, d.c, C.uint8_t(port), C.int(index), &key))); err != nil {
		return 0, err
	}
	return uint16(key), nil
}

// Counters are what the provider's device counts, by the names of kernel drivers; false where the kernel itself counts,
// in sysfs (hw_counters).
func (d *Device) Counters() (map[string]uint64, bool) {
	if !d.open() {
		return nil, false
	}
	var counters [C.CORE_COUNTERS_MAX]C.struct_core_counter
	count := int(C.core_counters(d.provider.c, &counters[0]))
	if count < 0 {
		return nil, false
	}
	found := make(map[string]uint64, count)
	for _, each := range counters[:count] {
		found[C.GoString(each.name)] = uint64(each.value)
	}
	return found, true
}

// PKeyIndex is the index of a partition key in a port's table (ibv_get_pkey_index(3)).  ENOENT where it is not in
// it, or without such a port.
func (d *Device) PKeyIndex(port int, key uint16) (int, error) {
	const op = "ibv_get_pkey_index"
	if err := d.checkPort(op, port); err != nil {
		return 0, err
	}
	index := int(C.core_get_pkey_index(d.provider.c, d.c, C.uint8_t(port), C.uint16_t(key)))
	if index < 0 {
		return 0, check(op, index)
	}
	return index, nil
}

func (d *Device) checkPort(op string, port int) error {
	if !d.open() {
		return closed(op, "device")
	}
	if port < 0 || port > math.MaxUint8 {
		return fail(op, syscall.EINVAL, "port %d (ports are 1 to 255)", port)
	}
	return nil
}
