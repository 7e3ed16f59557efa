package rdmacore

import (
	"errors"
	"strings"
	"syscall"
	"testing"
)

func TestOpenUnknown(t *testing.T) {
	_, err := Open("sofd")
	refused(t, err, syscall.ENOENT)
	for _, name := range append(Providers(), `"sofd"`) {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not say %s", err, name)
		}
	}
}

func TestNoProvider(t *testing.T) {
	p, err := Open("soft")
	must(t, err)
	device, err := p.DefaultDevice()
	must(t, err)
	must(t, p.Close())
	for _, p := range []*Provider{nil, p} {
		_, devices := p.Devices()
		_, channel := p.CreateEventChannel()
		_, first := p.DefaultDevice()
		same(t, devices, channel, first, p.Close())
		if p.Live().Total() != 0 {
			t.Error("a closed provider has live objects")
		}
	}
	for _, d := range []*Device{nil, device} {
		_, attr := d.Attr()
		_, ports := d.Ports()
		_, address := d.Address()
		_, pd := d.AllocPD()
		_, cq := d.CreateCQ(1)
		_, event := d.GetAsyncEvent(bounded(t))
		same(t, attr, ports, address, pd, cq, event)
		if d.Name() != "" || d.GUID() != 0 {
			t.Error("a closed device has a name")
		}
	}
}

func TestSoftDevice(t *testing.T) {
	p := soft(t)
	if p.Name() != "soft" {
		t.Errorf("name %q", p.Name())
	}
	devices, err := p.Devices()
	must(t, err)
	if len(devices) == 0 {
		t.Fatal("no devices")
	}
	device, err := p.DefaultDevice()
	must(t, err)
	if device != devices[0] || device.Name() == "" || device.GUID() == 0 || device.Provider() != p {
		t.Errorf("device %q", device.Name())
	}
	attr, err := device.Attr()
	must(t, err)
	if attr.MaxQP == 0 || attr.MaxSGE == 0 || attr.MaxCQE == 0 || attr.PhysicalPorts == 0 ||
		attr.MaxMRSize == 0 || attr.NodeGUID != device.GUID() {
		t.Errorf("%+v", attr)
	}
	ports, err := device.Ports()
	must(t, err)
	port := ports[0]
	if port.Number != 1 || port.State != "active" || port.LinkLayer != "Ethernet" || port.ActiveMTU != 4096 ||
		len(port.GIDs) == 0 {
		t.Errorf("%+v", port)
	}
	for _, gid := range port.GIDs {
		if gid.Type != "RoCE v2" || gid.Address != gid.Raw.Unmap() {
			t.Errorf("%+v", gid)
		}
	}
	address, err := device.Address()
	must(t, err)
	if !address.Is4() {
		t.Errorf("address %s", address)
	}
	if _, err := device.CreateCQ(0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a CQ of no entries: %v", err)
	}
	if _, err := device.CreateCQ(attr.MaxCQE + 1); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a CQ longer than the device can: %v", err)
	}
}

// TestVerbs: on a machine without libraries or devices there are sentences, not crashes; on one with a
// device it is listed.
func TestVerbs(t *testing.T) {
	p, err := Open("verbs")
	if err != nil {
		refused(t, err, syscall.ENOENT)
		if !strings.Contains(err.Error(), "librdmacm1") && !strings.Contains(err.Error(), "libibverbs1") {
			t.Errorf("no package to install: %v", err)
		}
		t.Skip(err)
	}
	defer func() { must(t, p.Close()) }()
	devices, err := p.Devices()
	if err != nil {
		t.Fatal(err)
	}
	if len(devices) != 0 {
		for _, device := range devices {
			_, err := device.Ports()
			must(t, err)
		}
		return
	}
	for range 2 {
		if _, err = p.DefaultDevice(); err == nil || !strings.Contains(err.Error(), "rdma link add") {
			t.Errorf("default device: %v", err)
		}
		if _, err = p.CreateEventChannel(); err == nil || !strings.Contains(err.Error(), "RDMA device") {
			t.Errorf("event channel: %v", err)
		}
	}
	t.Log(err)
}
