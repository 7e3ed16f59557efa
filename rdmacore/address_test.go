package rdmacore

import (
	"net/netip"
	"testing"
)

func TestAddressRoundTrip(t *testing.T) {
	for given, want := range map[string]string{
		"127.0.0.1:7174":          "127.0.0.1:7174",
		"0.0.0.0:0":               "0.0.0.0:0",
		"192.0.2.255:65535":       "192.0.2.255:65535",
		"[::1]:1":                 "[::1]:1",
		"[2001:db8::1234]:443":    "[2001:db8::1234]:443",
		"[fe80::1%7]:9":           "[fe80::1%7]:9",
		"[::ffff:192.0.2.1]:7174": "192.0.2.1:7174",
	} {
		c := toCAddress(netip.MustParseAddrPort(given))
		if got := fromCAddress(&c).String(); got != want {
			t.Errorf("%s became %s, want %s", given, got, want)
		}
	}
	none := toCAddress(netip.AddrPort{})
	if none.family != 0 || fromCAddress(&none).IsValid() {
		t.Error("no address became one")
	}
}

func TestScope(t *testing.T) {
	if scopeOf("lo") == 0 {
		t.Skip("no interface lo")
	}
	c := toCAddress(netip.MustParseAddrPort("[fe80::1%lo]:9"))
	if uint32(c.scope_id) != scopeOf("lo") {
		t.Errorf("zone lo became %d", c.scope_id)
	}
	if scopeOf("no-such-interface") != 0 || scopeOf("") != 0 {
		t.Error("an interface that is not there has a number")
	}
}

func TestMTU(t *testing.T) {
	for mtu, bytes := range map[uint32]int{0: 0, 1: 256, 2: 512, 3: 1024, 4: 2048, 5: 4096, 6: 0} {
		if got := mtuBytes(mtu); got != bytes {
			t.Errorf("MTU %d is %d bytes, want %d", mtu, got, bytes)
		}
		if bytes != 0 && mtuEnum(bytes) != mtu {
			t.Errorf("%d bytes are MTU %d, want %d", bytes, mtuEnum(bytes), mtu)
		}
	}
	if mtuEnum(1500) != 0 {
		t.Error("1500 bytes are an MTU of InfiniBand")
	}
	if got := linkRate(32, 2); got != 100 {
		t.Errorf("EDR 4x is %g Gbit/s", got)
	}
}
