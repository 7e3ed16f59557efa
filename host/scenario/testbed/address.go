package testbed

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
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
func DistinctRoles(providers Providers, configs []RoleConfig) (Distinct, error) {
	guids, addresses := make(map[uint64]bool), make(map[netip.Addr]bool)
	for i, config := range configs {
		provider := providers.Of(config.Name)
		device, err := Device(provider, config.Device)
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

// roleAddress is the address of the role with that index.  On soft each role has one of its own, 127.0.0.1, 127.0.0.2
// and so on, so that a link between two roles is a pair of addresses; the whole of 127.0.0.0/8 is the host's.  A guest
// makes its endpoints itself, and so has its device's address.
func (c RoleConfig) roleAddress(provider *rdmacore.Provider, device *rdmacore.Device, index int) (netip.Addr, error) {
	address, err := c.deviceAddress(device)
	if err != nil || c.Guest != nil || provider.Name() != "soft" || !address.Is4() || !address.IsLoopback() {
		return address, err
	}
	raw := address.As4()
	last := int(raw[3]) + index
	raw[2], raw[3] = raw[2]+byte(last/250), byte(last%250)
	return netip.AddrFrom4(raw), nil
}

// Device finds a device of the provider by its name; "" is the default.
func Device(provider *rdmacore.Provider, name string) (*rdmacore.Device, error) {
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

// deviceAddress is the IP address by which rdma_cm reaches the port and GID that a role wants: rdma_cm finds a
// device by the address of its network interface, so to choose an address is to choose the device.
func (c RoleConfig) deviceAddress(device *rdmacore.Device) (netip.Addr, error) {
	if c.Port == 0 && c.GID == "" {
		return device.Address()
	}
	ports, err := device.Ports()
	if err != nil {
		return netip.Addr{}, err
	}
	var wanted []rdmacore.Port
	for _, port := range ports {
		if c.Port == 0 || port.Number == c.Port {
			wanted = append(wanted, port)
		}
	}
	if len(wanted) == 0 {
		return netip.Addr{}, fmt.Errorf("device %s has no port %d; it has %d", device.Name(), c.Port, len(ports))
	}
	if c.GID != "" {
		return c.addressOfGID(device, wanted)
	}
	if port := wanted[0]; port.State != rdmacore.PortActive {
		return netip.Addr{}, fmt.Errorf("port %d of %s is %s", port.Number, device.Name(), port.State)
	}
	return firstAddress(device, wanted[0])
}

// addressOfGID finds an entry of the GID tables by index or by address.
func (c RoleConfig) addressOfGID(device *rdmacore.Device, ports []rdmacore.Port) (netip.Addr, error) {
	index, notAnIndex := strconv.Atoi(c.GID)
	address, _ := netip.ParseAddr(c.GID)
	var known []string
	for _, port := range ports {
		if device.IWARP() && slices.Contains(port.Addresses(), address.Unmap()) {
			return address.Unmap(), nil // it is in no GID table
		}
		for _, gid := range port.GIDs {
			named := gid.Address
			if !named.IsValid() {
				named = gid.Raw
			}
			known = append(known, fmt.Sprintf("%d %s", gid.Index, named))
			switch {
			case notAnIndex == nil && gid.Index != index,
				notAnIndex != nil && gid.Raw != address && gid.Address != address.Unmap():
			case !gid.Address.IsValid():
				return netip.Addr{}, fmt.Errorf("GID %s of %s port %d stands for no IP address, and rdma_cm finds devices by those",
					c.GID, device.Name(), port.Number)
			default:
				return gid.Address, nil
			}
		}
	}
	return netip.Addr{}, fmt.Errorf("device %s has no GID %s; it has %s", device.Name(), c.GID, strings.Join(known, ", "))
}

// firstAddress is the port's first IPv4 address, else its first IPv6 address that is not link-local.
func firstAddress(device *rdmacore.Device, port rdmacore.Port) (netip.Addr, error) {
	addresses := port.Addresses()
	routable := func(address netip.Addr) bool { return !address.IsLinkLocalUnicast() }
	for _, wanted := range []func(netip.Addr) bool{netip.Addr.Is4, routable} {
		if i := slices.IndexFunc(addresses, wanted); i >= 0 {
			return addresses[i], nil
		}
	}
	return netip.Addr{}, fmt.Errorf("port %d of %s has no IP address", port.Number, device.Name())
}
