package rdmacore

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestOpenUnknown(t *testing.T) {
	_, err := Open("sofd")
	refused(t, err, syscall.ENOENT)
	const want = `no provider is called "sofd"; there are soft, verbs`
	if err.Error() != want {
		t.Errorf("%q, expected %q", err, want)
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
		_, event := d.WaitAsyncEvent(bounded(t), anyEvent)
		same(t, attr, ports, address, pd, cq, event)
		if d.Name() != "" || d.GUID() != 0 {
			t.Error("a closed device has a name")
		}
	}
}

func TestDevice(t *testing.T) {
	p := opened(t)
	devices, err := p.Devices()
	must(t, err)
	if len(devices) == 0 {
		t.Fatal("no devices")
	}
	device, err := p.DefaultDevice()
	must(t, err)
	if !slices.Contains(devices, device) || device.Name() == "" || device.GUID() == 0 || device.Provider() != p {
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
	active := slices.IndexFunc(ports, func(port Port) bool { return port.State == PortActive })
	port := ports[active]
	if port.LinkLayer == LinkLayerUnspecified || port.ActiveMTU < 256 || port.MaxMTU < port.ActiveMTU ||
		len(port.GIDs) == 0 ||
		port.RateGbps <= 0 {
		t.Errorf("%+v", port)
	}
	for _, gid := range port.GIDs {
		if strings.HasPrefix(gid.Type, "RoCE") && gid.Address != gid.Raw.Unmap() {
			t.Errorf("%+v", gid)
		}
	}
	address, err := device.Address()
	must(t, err)
	if onSoft("what soft is") && (p.Name() != "soft" || port.ActiveMTU != 4096 || address.String() != "127.0.0.1") {
		t.Errorf("%s: %s, %+v", p.Name(), address, port)
	}
	if _, err := device.CreateCQ(0); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a CQ of no entries: %v", err)
	}
	if _, err := device.CreateCQ(attr.MaxCQE + 1); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("a CQ longer than the device can: %v", err)
	}
}

// TestMissingFunctions: what a provider lacks is ENOSYS by name, and nothing is made or lost by asking.
func TestMissingFunctions(t *testing.T) {
	p, err := Open("soft")
	must(t, err)
	defer func() { must(t, p.Close()) }()
	address := netip.MustParseAddrPort("127.0.0.1:1")
	channel, err := p.CreateEventChannel()
	must(t, err)
	defer func() { must(t, channel.Close()) }()
	id, err := channel.CreateEP(bounded(t), EPConfig{Destination: address})
	must(t, err)
	defer func() { must(t, id.Destroy()) }()
	device := id.Device()
	pd, err := device.AllocPD()
	must(t, err)
	defer func() { must(t, pd.Dealloc()) }()
	memory, err := NewMemory(1)
	must(t, err)
	defer memory.Release()

	whole := *p.c
	p.c.rdma_create_event_channel, p.c.rdma_create_id, p.c.rdma_bind_addr = nil, nil, nil
	p.c.rdma_resolve_addr, p.c.rdma_resolve_route, p.c.rdma_listen = nil, nil, nil
	p.c.rdma_connect, p.c.rdma_accept, p.c.rdma_reject = nil, nil, nil
	p.c.rdma_establish, p.c.rdma_disconnect, p.c.rdma_create_qp = nil, nil, nil
	p.c.rdma_get_cm_event, p.c.rdma_destroy_id = nil, nil
	p.c.ibv_alloc_pd, p.c.ibv_dealloc_pd, p.c.ibv_reg_mr = nil, nil, nil
	p.c.ibv_create_comp_channel, p.c.ibv_query_pkey, p.c.ibv_get_pkey_index = nil, nil, nil
	p.c.ibv_reg_mr_iova, p.c.ibv_init_ah_from_wc = nil, nil
	_, create := p.CreateEventChannel()
	_, createID := channel.CreateID(PortSpaceTCP)
	_, get := channel.GetEvent(bounded(t))
	_, alloc := device.AllocPD()
	_, register := pd.RegMR(memory, 0, 1, 0)
	_, cq := device.CreateCQ(1)
	_, registerIova := pd.RegMRIova(memory, 0, 1, 0, 0)
	_, pkey := device.PKey(1, 0)
	_, pkeyIndex := device.PKeyIndex(1, 0xffff)
	_, back := device.InitAHFromWC(&WC{}, make([]byte, GRHLength), 1)
	for name, err := range map[string]error{
		"rdma_create_event_channel": create,
		"rdma_create_id":            createID,
		"rdma_get_cm_event":         get,
		"rdma_bind_addr":            id.BindAddr(address),
		"rdma_resolve_addr":         id.ResolveAddr(netip.AddrPort{}, address, 1),
		"rdma_resolve_route":        id.ResolveRoute(1),
		"rdma_listen":               id.Listen(0),
		"rdma_connect":              id.Connect(&usualParam),
		"rdma_accept":               id.Accept(&usualParam),
		"rdma_reject":               id.Reject(nil),
		"rdma_establish":            id.Establish(),
		"rdma_disconnect":           id.Disconnect(),
		"rdma_create_qp":            id.CreateQP(nil, usualQP),
		"rdma_destroy_id":           id.Destroy(),
		"ibv_alloc_pd":              alloc,
		"ibv_dealloc_pd":            pd.Dealloc(),
		"ibv_reg_mr":                register,
		"ibv_create_comp_channel":   cq,
		"ibv_reg_mr_iova":           registerIova,
		"ibv_query_pkey":            pkey,
		"ibv_get_pkey_index":        pkeyIndex,
		"ibv_init_ah_from_wc":       back,
	} {
		refused(t, err, syscall.ENOSYS)
		if err == nil || !strings.Contains(err.Error(), "has no "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	live := p.c.live
	*p.c = whole
	if p.c.live != live {
		t.Error("a call that cannot work changed the counts")
	}
}
