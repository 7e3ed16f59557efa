package rdmacore

import (
	"syscall"
	"testing"
)

func TestExtendedDeviceAttr(t *testing.T) {
	device, err := opened(t).DefaultDevice()
	must(t, err)
	attr, err := device.Attr()
	must(t, err)
	if attr.MaxQP == 0 || attr.PhysicalPortsEx != attr.PhysicalPorts ||
		uint32(attr.CapFlagsEx)&attr.CapFlags != attr.CapFlags {
		t.Errorf("attributes %+v", attr)
	}
	if _, err := device.RawClock(); attr.CompletionTimestampMask != 0 {
		must(t, err)
	} else {
		refused(t, err, syscall.EOPNOTSUPP)
	}
	if index := device.Index(); (index >= 0) == onSoft("what soft is") {
		t.Errorf("index %d", index)
	}
	if (*Device)(nil).Index() != -1 {
		t.Error("no device has an index")
	}
	_, err = (*Device)(nil).RawClock()
	refused(t, err, syscall.EBADF)
}

func TestPartitionKeys(t *testing.T) {
	device, err := opened(t).DefaultDevice()
	must(t, err)
	attr, err := device.Attr()
	must(t, err)
	key, err := device.PKey(1, 0)
	must(t, err)
	if index, err := device.PKeyIndex(1, key); index != 0 || err != nil {
		t.Errorf("index %d, %v", index, err)
	}
	for _, row := range []struct {
		want        syscall.Errno
		port, index int
	}{{syscall.ENOENT, 1, attr.MaxPkeys}, {syscall.ENOENT, 0, 0}, {syscall.ENOENT, 200, 0},
		{syscall.EINVAL, -1, 0}, {syscall.EINVAL, 256, 0}, {syscall.EINVAL, 1, -1}, {syscall.EINVAL, 1, 1 << 31}} {
		_, err := device.PKey(row.port, row.index)
		refused(t, err, row.want)
	}
	_, err = device.PKeyIndex(1, 0x1234)
	refused(t, err, syscall.ENOENT)
	_, err = device.PKeyIndex(256, key)
	refused(t, err, syscall.EINVAL)
	_, err = (*Device)(nil).PKey(1, 0)
	refused(t, err, syscall.EBADF)
	_, err = (*Device)(nil).PKeyIndex(1, 0)
	refused(t, err, syscall.EBADF)
}

// No software device has options of a vendor.
func TestECEOfAQP(t *testing.T) {
	client, _ := connected(t)
	qp := client.id.QP()
	refused(t, qp.SetECE(ECE{VendorID: 0x15b3, Options: 1}), syscall.EOPNOTSUPP)
	_, err := qp.QueryECE()
	refused(t, err, syscall.EOPNOTSUPP)
	client.destroy(t)
	refused(t, qp.SetECE(ECE{VendorID: 0x15b3}), syscall.EBADF)
	_, err = qp.QueryECE()
	refused(t, err, syscall.EBADF)
}
