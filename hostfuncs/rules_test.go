package hostfuncs

import (
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

func TestAddressRules(t *testing.T) {
	for text, has := range map[string]map[string]bool{
		"127.0.0.1:7471": {
			"127.0.0.1:7471": true, "127.0.0.1:7472": false, "127.0.0.2:7471": false, "[::ffff:127.0.0.1]:7471": true,
			"0.0.0.0:7471": false,
		},
		"10.0.0.0/8:7000-7999": {
			"10.1.2.3:7000": true, "10.1.2.3:7999": true, "10.1.2.3:8000": false, "11.0.0.0:7000": false,
			"10.0.0.1:0": false,
		},
		"[fe80::/10]:*": {"[fe80::1%eth0]:1": true, "[fe80::1]:0": true, "[::1]:1": false, "127.0.0.1:1": false},
		"[::1]:7471":    {"[::1]:7471": true, "[::]:7471": false},
		"*:7471":        {"0.0.0.0:7471": true, "[::]:7471": true, "192.0.2.1:7471": true, "192.0.2.1:0": false},
		"0.0.0.0/0:*":   {"0.0.0.0:7471": true, "192.0.2.1:0": true, "[::1]:1": false},
	} {
		rule, err := ParseAddressRule(text)
		if err != nil {
			t.Error(err)
		}
		for address, want := range has {
			at := netip.MustParseAddrPort(address)
			if got := rule.has(at.Addr()) && rule.hasPort(at.Port()); got != want {
				t.Errorf("%s has %s: %v", text, address, got)
			}
		}
		if rule.has(netip.Addr{}) != (text == "*:7471") {
			t.Errorf("%s has no address", text)
		}
	}
	for _, wrong := range []string{"", "*", "127.0.0.1", ":1", "::1:7471", "[::1]", "[::1:1", "127.0.0.1:",
		"127.0.0.1:0", "127.0.0.1:2-1", "127.0.0.1:65536",
		"10.0.0.0/33:*", "host:1", "[fe80::1%eth0]:1", "*:1-2-3", "*:-1"} {
		if rule, err := ParseAddressRule(wrong); err == nil {
			t.Errorf("%q is %+v", wrong, rule)
		}
	}
}

// What no rule lets a guest do is refused before anything is done, and the refusal names the rule.
func TestRules(t *testing.T) {
	rules := func(texts ...string) []AddressRule {
		list := []AddressRule{}
		for _, text := range texts {
			rule, err := ParseAddressRule(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, rule)
		}
		return list
	}
	i := newInstance(t, 4096, Config{Rules: Rules{
		Bind: rules("127.0.0.1:7490"), Connect: rules("127.0.0.1:7490-7491"), Devices: []string{"other0"},
	}})
	channel := uint64(call(t, i, "create_event_channel"))
	id := uint64(call(t, i, "create_id", channel, 0))
	at := func(text string) uint64 {
		put(i, 256, addressOf(netip.MustParseAddrPort(text)))
		return 256
	}
	refused := func(missing string) {
		t.Helper()
		if !strings.Contains(i.lastError.Error(), missing) {
			t.Errorf("%v, not %s", i.lastError, missing)
		}
	}
	expect(t, i, syscall.EPERM, "bind_addr", id, at("127.0.0.1:7491"))
	refused(`allow: {bind: ["127.0.0.1:7491"]}`)
	expect(t, i, syscall.EPERM, "listen", id, 1)
	refused(`allow: {bind: ["*:*"]}`)
	expect(t, i, syscall.EPERM, "resolve_addr", id, 0, at("127.0.0.1:7492"), 100)
	refused(`allow: {connect: ["127.0.0.1:7492"]}`)
	expect(t, i, syscall.EPERM, "resolve_addr", id, at("127.0.0.1:7000"), 0, 100)
	refused(`allow: {bind: ["127.0.0.1:7000"]}`)
	expect(t, i, syscall.EPERM, "join_multicast", id, at("224.0.0.1:0"), 0)
	refused(`allow: {connect: ["224.0.0.1:*"]}`)
	expect(t, i, 0, "resolve_addr", id, 0, at("127.0.0.1:7491"), 100)
	expect(t, i, syscall.EPERM, "alloc_pd", 0)
	refused(`allow: {devices: ["soft0"]}`)
	expect(t, i, syscall.EPERM, "open_device", 0)
	for _, attr := range []rdmacore.AHAttr{{}, {IsGlobal: true, DGID: netip.MustParseAddr("fe80::1")}} {
		if i.maySendBy(attr) == nil {
			t.Errorf("it may send by %+v", attr)
		}
	}
	if err := i.maySendBy(rdmacore.AHAttr{IsGlobal: true, DGID: netip.MustParseAddr("::ffff:127.0.0.1")}); err != nil {
		t.Error(err)
	}
	open := newInstance(t, 4096, Config{})
	channel = uint64(call(t, open, "create_event_channel"))
	put(open, 256, addressOf(netip.MustParseAddrPort("127.0.0.1:7490")))
	expect(t, open, 0, "bind_addr", uint64(call(t, open, "create_id", channel, 0)), 256)
}

// A guest that may use nothing has no name looked up, and no other way to a device than those that open it.
func TestRulesThatAllowNothing(t *testing.T) {
	i := newInstance(t, 1<<16, Config{Rules: Rules{
		Bind: []AddressRule{}, Connect: []AddressRule{}, Devices: []string{},
	}})
	query := AddrQuery{StructSize: uint32(unsafe.Sizeof(AddrQuery{}))}
	for node, want := range map[string]syscall.Errno{"name.invalid": syscall.EPERM, "127.0.0.1": 0, "::1": 0} {
		query.Node = [len(query.Node)]byte{}
		copy(query.Node[:], node)
		put(i, queryAt, query)
		put(i, resultAt, AddrResult{StructSize: uint32(unsafe.Sizeof(AddrResult{}))})
		expect(t, i, want, "getaddrinfo", queryAt, resultAt, timeout)
		if want != 0 && !strings.Contains(i.lastError.Error(), node) {
			t.Error(i.lastError)
		}
	}
	for _, call := range []struct {
		name string
		args []uint64
	}{
		{"alloc_pd", []uint64{0}}, {"open_device", []uint64{0}}, {"create_cq", []uint64{0, 4}},
		{"create_comp_channel", []uint64{0}},
		{"query_device", []uint64{0, 0x3000}}, {"query_port", []uint64{0, 1, 0x3000}},
		{"query_gid_ex", []uint64{0, 1, 0, 0x3000}},
		{"query_pkey", []uint64{0, 1, 0, 0x3000}}, {"wait_async", []uint64{0, 0x3000, 0}},
	} {
		expect(t, i, syscall.EPERM, call.name, call.args...)
	}
	found(t, "the default device's events", polled(t, i, 0, pri(0)), pollErr)
	endpoint := must(t, i, "create_id", 0, 0)
	ep, _ := i.endpoints.get(Handle(endpoint))
	device, err := i.provider.DefaultDevice()
	if err != nil {
		t.Fatal(err)
	}
	if err := ep.id.BindAddr(netip.MustParseAddrPort("127.0.0.1:0")); err != nil || ep.id.Device() != device {
		t.Fatal(err, ep.id.Device())
	}
	if got := i.giveQP(ep, &rdmacore.QPInitAttr{}, func() error { t.Error("a QP is made"); return nil }); got != -int32(
		syscall.EPERM,
	) {
		t.Errorf("a QP of the endpoint: %d", got)
	}
	must(t, i, "destroy_id", endpoint)
}
