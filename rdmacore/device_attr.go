package rdmacore

// #include "core/core.h"
import "C"

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
