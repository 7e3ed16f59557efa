package testbed

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"rdmarun/rdmacore"
)

// addressOf is the IP address by which rdma_cm reaches the port and GID that a role wants: rdma_cm finds a
// device by the address of its network interface, so the address is the choice.
func (c RoleConfig) addressOf(device *rdmacore.Device) (netip.Addr, error) {
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
	var six netip.Addr
	for _, address := range port.Addresses() {
		switch {
		case address.Is4():
			return address, nil
		case !six.IsValid() && !address.IsLinkLocalUnicast():
			six = address
		}
	}
	if !six.IsValid() {
		return six, fmt.Errorf("port %d of %s has no IP address", port.Number, device.Name())
	}
	return six, nil
}
