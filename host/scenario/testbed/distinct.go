package testbed

import (
	"fmt"
	"net/netip"
	"strings"

	"rdmarun/rdmacore"
)

// Distinct tells what the roles of a case do not share.
type Distinct struct {
	// Devices: no two are on one device, by the devices' node GUIDs.  Addresses: no two have one address.
	Devices, Addresses bool
	// Hosts: no two are on one host.  One process drives all roles, so only where there are fewer than two.
	Hosts bool
}

// DistinctRoles looks at where roles would run; an error says which cannot run at all.
func DistinctRoles(provider *rdmacore.Provider, configs []RoleConfig) (Distinct, error) {
	guids, addresses := make(map[uint64]bool), make(map[netip.Addr]bool)
	for i, config := range configs {
		device, err := deviceNamed(provider, config.Device)
		if err != nil {
			return Distinct{}, err
		}
		address, err := config.roleAddress(provider, device, i)
		if err != nil {
			return Distinct{}, err
		}
		guids[device.GUID()], addresses[address] = true, true
	}
	return Distinct{
		Devices: len(guids) == len(configs), Addresses: len(addresses) == len(configs), Hosts: len(configs) < 2,
	}, nil
}

// roleAddress is the address of the role with that index.  A guest makes its own endpoints, and so has its
// device's.
func (c RoleConfig) roleAddress(provider *rdmacore.Provider, device *rdmacore.Device, index int) (netip.Addr, error) {
	address, err := c.addressOf(device)
	if err != nil || c.Guest != nil {
		return address, err
	}
	return ownAddress(provider, address, index), nil
}

// ownAddress gives each role on soft an address of its own, 127.0.0.1, 127.0.0.2 and so on, so that a link
// between two roles is a pair of addresses.  The whole of 127.0.0.0/8 is the host's.
func ownAddress(provider *rdmacore.Provider, address netip.Addr, index int) netip.Addr {
	if provider.Name() != "soft" || !address.Is4() || !address.IsLoopback() {
		return address
	}
	raw := address.As4()
	last := int(raw[3]) + index
	raw[2], raw[3] = raw[2]+byte(last/250), byte(last%250)
	return netip.AddrFrom4(raw)
}

// deviceNamed finds a device; "" is the provider's default.
func deviceNamed(provider *rdmacore.Provider, name string) (*rdmacore.Device, error) {
	if name == "" {
		return provider.DefaultDevice()
	}
	devices, err := provider.Devices()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(devices))
	for i, device := range devices {
		if names[i] = device.Name(); names[i] == name {
			return device, nil
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("no device %q: provider %s has no device at all", name, provider.Name())
	}
	return nil, fmt.Errorf("no device %q; provider %s has %s", name, provider.Name(), strings.Join(names, ", "))
}
