package verb

import (
	"context"

	"rdmarun/rdmacore"
)

// deviceFact is one thing that a device says of itself.
type deviceFact struct {
	name, doc string
	get       func(attr *rdmacore.DeviceAttr) int
}

// deviceFacts are what query_device tells beside names, by the names of struct ibv_device_attr_ex.
func deviceFacts() []deviceFact {
	return []deviceFact{
		{"max_qp", "queue pairs", func(a *rdmacore.DeviceAttr) int { return a.MaxQP }},
		{"max_qp_wr", "work requests in a queue", func(a *rdmacore.DeviceAttr) int { return a.MaxQPWR }},
		{"max_sge", "buffers of a request", func(a *rdmacore.DeviceAttr) int { return a.MaxSGE }},
		{"max_sge_rd", "buffers of a READ", func(a *rdmacore.DeviceAttr) int { return a.MaxSGERead }},
		{"max_cq", "completion queues", func(a *rdmacore.DeviceAttr) int { return a.MaxCQ }},
		{"max_cqe", "entries of a completion queue", func(a *rdmacore.DeviceAttr) int { return a.MaxCQE }},
		{"max_mr", "memory regions", func(a *rdmacore.DeviceAttr) int { return a.MaxMR }},
		{"max_mw", "memory windows", func(a *rdmacore.DeviceAttr) int { return a.MaxMW }},
		{"max_pd", "protection domains", func(a *rdmacore.DeviceAttr) int { return a.MaxPD }},
		{"max_qp_rd_atom", "READs and atomics served at once", func(a *rdmacore.DeviceAttr) int { return a.MaxQPRdAtom }},
		{"max_qp_init_rd_atom", "READs and atomics outstanding at once", func(a *rdmacore.DeviceAttr) int { return a.MaxQPInitRdAtom }},
		{"max_srq", "shared receive queues", func(a *rdmacore.DeviceAttr) int { return a.MaxSRQ }},
		{"max_srq_wr", "receives in one", func(a *rdmacore.DeviceAttr) int { return a.MaxSRQWR }},
		{"max_srq_sge", "buffers of such a receive", func(a *rdmacore.DeviceAttr) int { return a.MaxSRQSGE }},
		{"max_ah", "address handles", func(a *rdmacore.DeviceAttr) int { return a.MaxAH }},
		{"max_mcast_grp", "multicast groups", func(a *rdmacore.DeviceAttr) int { return a.MaxMulticast }},
		{"max_pkeys", "partition keys of a port", func(a *rdmacore.DeviceAttr) int { return a.MaxPkeys }},
		{"local_ca_ack_delay", "code n of how long an acknowledgement takes it at most, 4.096 us * 2^n", func(a *rdmacore.DeviceAttr) int { return a.LocalCAAckDelay }},
		{"vendor_id", "vendor", func(a *rdmacore.DeviceAttr) int { return int(a.VendorID) }},
		{"vendor_part_id", "the vendor's number of the part", func(a *rdmacore.DeviceAttr) int { return int(a.VendorPartID) }},
		{"phys_port_cnt", "ports, as far as a byte counts", func(a *rdmacore.DeviceAttr) int { return a.PhysicalPorts }},
		{"phys_port_cnt_ex", "ports", func(a *rdmacore.DeviceAttr) int { return a.PhysicalPortsEx }},
		{"device_cap_flags", "enum ibv_device_cap_flags", func(a *rdmacore.DeviceAttr) int { return int(a.CapFlags) }},
		{"hca_core_clock", "kHz of the clock of completion_ts and query_rt_values", func(a *rdmacore.DeviceAttr) int { return int(a.CoreClock) }},
		{"odp_general_caps", "on-demand paging, enum ibv_odp_general_caps", func(a *rdmacore.DeviceAttr) int { return int(a.ODPCaps) }},
		{"rc_odp_caps", "what of RC can do it, enum ibv_odp_transport_cap_bits", func(a *rdmacore.DeviceAttr) int { return int(a.ODPCapsRC) }},
		{"uc_odp_caps", "of UC", func(a *rdmacore.DeviceAttr) int { return int(a.ODPCapsUC) }},
		{"ud_odp_caps", "of UD", func(a *rdmacore.DeviceAttr) int { return int(a.ODPCapsUD) }},
		{"pci_atomic_fetch_add", "enum ibv_pci_atomic_op_size", func(a *rdmacore.DeviceAttr) int { return int(a.PCIAtomicFetchAdd) }},
		{"pci_atomic_swap", "likewise", func(a *rdmacore.DeviceAttr) int { return int(a.PCIAtomicSwap) }},
		{"pci_atomic_compare_swap", "likewise", func(a *rdmacore.DeviceAttr) int { return int(a.PCIAtomicCompareSwap) }},
		{"max_cq_count", "completions that modify_cq makes one event of", func(a *rdmacore.DeviceAttr) int { return int(a.MaxModerationCount) }},
		{"max_cq_period", "microseconds that it waits", func(a *rdmacore.DeviceAttr) int { return int(a.MaxModerationPeriod) }},
		{"max_dm_size", "bytes of its own memory", func(a *rdmacore.DeviceAttr) int { return int(a.MaxDMSize) }},
		{"max_tso", "bytes of a message that it segments", func(a *rdmacore.DeviceAttr) int { return int(a.MaxTSO) }},
	}
}

// deviceVerbs ask the role's device.
func deviceVerbs() []Verb {
	results := []Result{
		{Name: "name", Type: Text, Varies: true, Doc: "of the device"},
		{Name: "fw_ver", Type: Text, Varies: true, Doc: "firmware"},
		{Name: "index", Type: Integer, Varies: true, Doc: "the kernel's number of it; -1 for none"},
		{Name: "max_mr_size", Type: Size, Varies: true, Doc: "bytes of a memory region"},
		{Name: "atomic", Type: Boolean, Varies: true, Doc: "whether it has atomics"},
		{Name: "device_cap_flags_ex", Type: Unsigned, Hex: true, Varies: true, Doc: "device_cap_flags, and those beyond 32 bits"},
		{Name: "completion_timestamp_mask", Type: Unsigned, Hex: true, Varies: true, Doc: "bits that count of completion_ts; 0: it has no time stamps"},
	}
	for _, fact := range deviceFacts() {
		results = append(results, Result{Name: fact.name, Type: Integer, Varies: true, Doc: fact.doc})
	}
	return []Verb{
		{
			Name: "query_device", Manual: "ibv_query_device_ex(3)", Yields: Value, Run: queryDevice, Results: results,
			Doc: "Ask the role's device for its limits.  What only ibv_query_device_ex tells is 0 on a device that has ibv_query_device alone.",
		},
		{
			Name: "query_rt_values", Manual: "ibv_query_rt_values_ex(3)", Capability: CanStamp, Yields: Value, Run: queryRTValues,
			Doc:     "Read the clock of the role's device, from which completion_ts comes.",
			Results: []Result{{Name: "raw_clock", Type: Unsigned, Varies: true, Doc: "ticks; hca_core_clock thousand of them are a second"}},
		},
	}
}

func queryDevice(_ context.Context, call *Call) (Outcome, error) {
	device := call.Role.Device()
	attr, err := device.Attr()
	if err != nil {
		return Outcome{}, err
	}
	name := device.Name()
	fields := []any{name, attr.FirmwareVersion, device.Index(), uint64(attr.MaxMRSize), attr.Atomic, uint64(attr.CapFlagsEx), uint64(attr.CompletionTimestampMask)}
	for _, fact := range deviceFacts() {
		fields = append(fields, fact.get(&attr))
	}
	return Outcome{Fields: fields, Summary: func() string { return name }}, nil
}

func queryRTValues(_ context.Context, call *Call) (Outcome, error) {
	raw, err := call.Role.Device().RawClock()
	return Outcome{Fields: []any{raw}}, err
}
