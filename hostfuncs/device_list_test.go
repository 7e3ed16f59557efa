package hostfuncs

import (
	"syscall"
	"testing"
	"unsafe"
)

// A device by its handle is what it is as an endpoint's, and outlives the handle.
func TestDeviceList(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	if n := must(t, i, "get_device_list"); n != 1 {
		t.Errorf("%d devices", n)
	}
	expect(t, i, syscall.ENODEV, "open_device", 1)
	expect(t, i, syscall.ENODEV, "open_device", 1<<32-1)
	device, again := must(t, i, "open_device", 0), must(t, i, "open_device", 0)
	pd := must(t, i, "alloc_pd", device)
	cq := must(t, i, "create_cq", device, 8)
	var addresses [2]Address
	for n, of := range []uint64{device, p.active} {
		must(t, i, "device_address", of, addressAt)
		addresses[n] = take[Address](i, addressAt)
	}
	if addresses[0] != addresses[1] {
		t.Errorf("addresses %v", addresses)
	}
	found(t, "nothing has happened", polled(t, i, 0, pri(device)), 0)
	p.trespass(t)
	found(t, "an asynchronous event", polled(t, i, timeout, pri(device), in(device)), pollPri, 0)
	async(t, i, device, 0)

	const port = 1
	must(t, i, "query_gid_ex", device, port, 0, addressAt)
	entry := take[GIDEntry](i, addressAt)
	if entry.GID == [16]byte{} || entry.Port != port || entry.Type != gidTypeRoCEv2 || unsafe.Sizeof(entry) != 32 {
		t.Errorf("%+v", entry)
	}
	expect(t, i, syscall.ENODATA, "query_gid_ex", 0, port, 4096, addressAt)
	expect(t, i, syscall.EINVAL, "query_gid_ex", 0, 256, 0, addressAt)
	expect(t, i, syscall.EFAULT, "query_gid_ex", 0, port, 0, uint64(len(i.memory)))
	expect(t, i, syscall.EBADF, "query_gid_ex", pd, port, 0, addressAt)

	must(t, i, "close_device", device)
	expect(t, i, syscall.EBADF, "close_device", device)
	expect(t, i, syscall.EBADF, "alloc_pd", device)
	must(t, i, "alloc_pd", again)
	must(t, i, "dealloc_pd", pd)
	must(t, i, "destroy_cq", cq)
}
