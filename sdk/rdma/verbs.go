package rdma

import (
	"time"
	"unsafe"
)

// Device is a device that was opened, or an endpoint's.  The zero Device is the default device.
type Device struct{ Handle Handle }

// Devices counts the devices.
func Devices() (int, error) {
	result := abiGetDeviceList()
	return int(max(result, 0)), check("get_device_list", result)
}

// OpenDevice opens a device by its index, from 0.
func OpenDevice(index int) (*Device, error) {
	h, err := handle("open_device", abiOpenDevice(uint32(index)))
	if err != nil {
		return nil, err
	}
	return &Device{h}, nil
}

// Close forgets the device; what was made on it stays.
func (d *Device) Close() error { return check("close_device", abiCloseDevice(d.Handle)) }

// Query asks what the device can do.
func (d *Device) Query() (DeviceAttr, error) {
	attr := DeviceAttr{StructSize: uint32(unsafe.Sizeof(DeviceAttr{}))}
	err := check("query_device", abiQueryDevice(d.Handle, &attr))
	return attr, err
}

// QueryPort asks for a port; the first is 1.
func (d *Device) QueryPort(number int) (PortAttr, error) { return queryPort(d.Handle, number) }

// QueryGID asks for an entry of a port's table of GIDs; ENODATA for an empty one.
func (d *Device) QueryGID(port, index int) (GIDEntry, error) {
	var entry GIDEntry
	err := check("query_gid_ex", abiQueryGIDEx(d.Handle, uint32(port), uint32(index), &entry))
	return entry, err
}

// QueryPKey returns a partition key of a port's table.
func (d *Device) QueryPKey(port, index int) (uint16, error) {
	result := abiQueryPkey(d.Handle, uint32(port), uint32(index))
	return uint16(max(result, 0)), check("query_pkey", result)
}

// PKeyIndex finds a partition key in a port's table.
func (d *Device) PKeyIndex(port int, pkey uint16) (int, error) {
	result := abiGetPkeyIndex(d.Handle, uint32(port), uint32(pkey))
	return int(max(result, 0)), check("get_pkey_index", result)
}

// RawClock reads the device's clock, from which Timestamp.Raw comes; EOPNOTSUPP where the device does not show it.
func (d *Device) RawClock() (ticks uint64, err error) {
	err = check("query_rt_values", abiQueryRtValues(d.Handle, &ticks))
	return ticks, err
}

// WaitAsync waits for the device's next asynchronous event, as the function of that name.
func (d *Device) WaitAsync(timeout time.Duration) (AsyncEvent, error) {
	return waitAsync(d.Handle, timeout)
}

// AllocPD allocates a protection domain.
func (d *Device) AllocPD() (*PD, error) {
	h, err := handle("alloc_pd", abiAllocPD(d.Handle))
	if err != nil {
		return nil, err
	}
	return &PD{h}, nil
}

// CreateCQ makes a completion queue, with a completion channel of its own.
func (d *Device) CreateCQ(entries int) (*CQ, error) { return createCQ(d.Handle, entries) }

// CompChannel carries the completion events of several CQs.
type CompChannel struct{ Handle Handle }

// CreateCompChannel makes a completion channel.
func (d *Device) CreateCompChannel() (*CompChannel, error) {
	h, err := handle("create_comp_channel", abiCreateCompChannel(d.Handle))
	if err != nil {
		return nil, err
	}
	return &CompChannel{h}, nil
}

// Destroy destroys the channel; EBUSY while it has CQs.
func (c *CompChannel) Destroy() error {
	return check("destroy_comp_channel", abiDestroyCompChannel(c.Handle))
}

// CreateCQ makes a completion queue that sends its events to the channel.
func (c *CompChannel) CreateCQ(entries int) (*CQ, error) { return createCQ(c.Handle, entries) }

// WaitEvent waits for an event that RequestNotify of one of the CQs asked for, and returns that CQ.
func (c *CompChannel) WaitEvent(timeout time.Duration) (*CQ, error) {
	h, err := handle("wait_cq_event", abiWaitCQEvent(c.Handle, int64(timeout)))
	if err != nil {
		return nil, err
	}
	return &CQ{h}, nil
}

// RequestNotify asks for one event at the next completion; what had completed before raises none.
func (c *CQ) RequestNotify(solicitedOnly bool) error {
	only := uint32(0)
	if solicitedOnly {
		only = 1
	}
	return check("req_notify", abiReqNotify(c.Handle, only))
}

// WaitEvent waits for the event that RequestNotify asked for.
func (c *CQ) WaitEvent(timeout time.Duration) error {
	return check("wait_cq_event", abiWaitCQEvent(c.Handle, int64(timeout)))
}

// CreateQP makes a queue pair without an endpoint, in RESET; its type and its CQs have to be given.
func (p *PD) CreateQP(attr QPInitAttr) (*QP, error) {
	h, err := handle("create_qp", abiCreateQP(0, p.Handle, attr.sized()))
	if err != nil {
		return nil, err
	}
	return &QP{h}, nil
}

// CreateQPEx is CreateQP with extended attributes.
func (p *PD) CreateQPEx(attr QPInitAttr, extra QPExtra) (*QP, error) {
	extra.StructSize = uint32(unsafe.Sizeof(extra))
	h, err := handle("create_qp_ex", abiCreateQPEx(0, p.Handle, attr.sized(), &extra))
	if err != nil {
		return nil, err
	}
	return &QP{h}, nil
}

// Modify changes the attributes that mask, of enum ibv_qp_attr_mask, names.
func (q *QP) Modify(attr QPAttr, mask uint32) error {
	attr.StructSize = uint32(unsafe.Sizeof(attr))
	return check("modify_qp", abiModifyQP(q.Handle, &attr, mask))
}

// Destroy destroys a queue pair of PD.CreateQP; EINVAL for an endpoint's, which goes with that.
func (q *QP) Destroy() error { return check("destroy_qp", abiDestroyQP(q.Handle)) }
