package testbed

import (
	"net/netip"
	"strings"
	"testing"

	"rdmarun/rdmacore"
)

// softDevice opens soft, and sees to it that nothing of it is left.
func softDevice(t *testing.T) (*rdmacore.Provider, *rdmacore.Device) {
	t.Helper()
	provider, err := rdmacore.Open("soft")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := provider.Close(); err != nil {
			t.Error(err)
		}
	})
	device, err := Device(provider, "")
	if err != nil {
		t.Fatal(err)
	}
	return provider, device
}

// TestDevice finds devices by their names, and names those that there are.
func TestDevice(t *testing.T) {
	provider, device := softDevice(t)
	if named, err := Device(provider, device.Name()); err != nil || named.Name() != device.Name() {
		t.Errorf("%v, %v, want %s", named, err, device.Name())
	}
	if _, err := Device(provider, "mlx5_9"); err == nil ||
		!strings.Contains(err.Error(), "provider soft has "+device.Name()) {
		t.Errorf("%v, want the devices that there are", err)
	}
}

// TestRoleAddress: on soft each role has an address of its own, and a guest has its device's.
func TestRoleAddress(t *testing.T) {
	provider, device := softDevice(t)
	for _, test := range []struct {
		config RoleConfig
		index  int
		want   string // an address, or a part of the error
	}{
		{RoleConfig{}, 0, "127.0.0.1"},
		{RoleConfig{}, 1, "127.0.0.2"},
		{RoleConfig{}, 248, "127.0.0.249"},
		{RoleConfig{}, 249, "127.0.1.0"},
		{RoleConfig{}, 500, "127.0.2.1"},
		{RoleConfig{}, 250*256 - 1, "127.1.0.0"}, // 64 counted roles have so many instances
		{RoleConfig{}, 250*256 + 1, "127.1.0.2"},
		{RoleConfig{Guest: &GuestConfig{}}, 5, "127.0.0.1"},
		{RoleConfig{Port: 1}, 2, "127.0.0.3"},
		{RoleConfig{GID: "127.0.0.1"}, 3, "127.0.0.4"},
		{RoleConfig{Port: 7}, 0, "has no port 7; it has 1"},
		{RoleConfig{GID: "4000"}, 0, "has no GID 4000; it has 0 "},
		{RoleConfig{GID: "10.1.2.3"}, 0, "has no GID 10.1.2.3; it has 0 "},
	} {
		got, err := test.config.roleAddress(provider, device, test.index)
		if err != nil && strings.Contains(err.Error(), test.want) || err == nil && got.String() == test.want {
			continue
		}
		t.Errorf("role %d of %+v: %v, %v, want %s", test.index, test.config, got, err, test.want)
	}
}

// TestAddressOfGID finds entries of a table by index and by address, and refuses those that rdma_cm cannot reach.
func TestAddressOfGID(t *testing.T) {
	_, device := softDevice(t)
	address := netip.MustParseAddr
	ports := []rdmacore.Port{
		{
			Number: 1,
			GIDs: []rdmacore.GID{
				{Index: 0, Raw: address("fe80::1")},
				{Index: 1, Raw: address("::ffff:10.0.0.1"), Address: address("10.0.0.1")},
			},
		},
		{Number: 2, GIDs: []rdmacore.GID{{Index: 3, Raw: address("2001:db8::7"), Address: address("2001:db8::7")}}},
	}
	for gid, want := range map[string]string{
		"1":               "10.0.0.1",
		"10.0.0.1":        "10.0.0.1",
		"::ffff:10.0.0.1": "10.0.0.1",
		"3":               "2001:db8::7",
		"2001:db8::7":     "2001:db8::7",
		"0":               "GID 0 of soft0 port 1 is no IP address",
		"fe80::1":         "GID fe80::1 of soft0 port 1 is no IP address",
		"2":               "has no GID 2; it has 0 fe80::1, 1 10.0.0.1, 3 2001:db8::7",
		"10.0.0.9":        "has no GID 10.0.0.9; it has",
	} {
		got, err := RoleConfig{GID: gid}.addressOfGID(device, ports)
		if err != nil && strings.Contains(err.Error(), want) || err == nil && got == address(want) {
			continue
		}
		t.Errorf("GID %s: %v, %v, want %s", gid, got, err, want)
	}
}

// TestPlaces: soft has one device, and an address for each role; no two roles of this process have a host each.
func TestPlaces(t *testing.T) {
	provider, _ := softDevice(t)
	for _, test := range []struct {
		name                      string
		roles                     []RoleConfig
		hosts, devices, addresses bool
	}{
		{"no role", nil, true, true, true},
		{"one", []RoleConfig{{}}, true, true, true},
		{"two", []RoleConfig{{}, {}}, false, false, true},
		{"two guests", []RoleConfig{{Guest: &GuestConfig{}}, {Guest: &GuestConfig{}}}, false, false, false},
	} {
		places, err := Places(One(provider), test.roles)
		got := Distinct(places)
		if err != nil || got["distinct_hosts"] != test.hosts || got["distinct_devices"] != test.devices ||
			got["distinct_addresses"] != test.addresses {
			t.Errorf("%s: %+v, %v", test.name, got, err)
		}
	}
	if _, err := Places(One(provider), []RoleConfig{{Device: "mlx5_9"}}); err == nil {
		t.Error("a role on a device that there is not")
	}
	if got := Distinct([]Place{{Host: "a"}, {Host: "b"}}); got["distinct_hosts"] != true {
		t.Errorf("two hosts: %v", got)
	}
}
