package main

import (
	"fmt"

	"rdmarun/rdmacore"
)

// deviceListVersion is raised when a field of the JSON changes its meaning or goes away.
const deviceListVersion = 1

// deviceList is what `devices --format json` prints; scripts read it, so names stay.
type deviceList struct {
	Version     int                   `json:"version"`
	Devices     []deviceRow           `json:"devices"`
	Unavailable []unavailableProvider `json:"unavailable"`
}

// newDeviceList is an empty list; its slices are not nil, so that JSON has [] and not null.
func newDeviceList() deviceList {
	return deviceList{
		Version:     deviceListVersion,
		Devices:     []deviceRow{},
		Unavailable: []unavailableProvider{},
	}
}

type unavailableProvider struct {
	Provider string `json:"provider"`
	Reason   string `json:"reason"`
}

type deviceRow struct {
	Provider string    `json:"provider"`
	Name     string    `json:"name"`
	GUID     string    `json:"guid"` // node GUID, 16 hexadecimal digits
	Caps     []string  `json:"caps"` // what it can do: transports, then operations
	Ports    []portRow `json:"ports"`
}

type portRow struct {
	Number    int      `json:"number"`
	State     string   `json:"state"`
	LinkLayer string   `json:"link_layer"`
	RateGbps  float64  `json:"rate_gbps"`
	ActiveMTU int      `json:"active_mtu"` // bytes of payload in a packet
	MaxMTU    int      `json:"max_mtu"`
	Netdev    string   `json:"netdev,omitempty"`
	GIDs      []gidRow `json:"gids"`
	Addresses []string `json:"addresses"` // by which rdma_cm reaches the port
}

type gidRow struct {
	Index   int    `json:"index"`
	GID     string `json:"gid"` // 16 bytes in IPv6 notation
	Type    string `json:"type"`
	Address string `json:"address,omitempty"` // the IP address, where the GID is made from one
}

func describeDevice(provider string, device *rdmacore.Device) (deviceRow, error) {
	row := deviceRow{
		Provider: provider,
		Name:     device.Name(),
		GUID:     fmt.Sprintf("%016x", device.GUID()),
		Caps:     []string{},
		Ports:    []portRow{},
	}
	var err error
	if row.Caps, err = capabilities(device); err != nil {
		return row, err
	}
	ports, err := device.Ports()
	if err != nil {
		return row, err
	}
	for _, port := range ports {
		row.Ports = append(row.Ports, describePort(port))
	}
	return row, nil
}

// capabilities are what scenarios may ask of a device by "requires".
func capabilities(device *rdmacore.Device) ([]string, error) {
	attr, err := device.Attr()
	if err != nil {
		return nil, err
	}
	caps := []string{}
	for _, each := range []struct {
		can  bool
		name string
	}{
		{true, "rc"}, {attr.Atomic, "atomic"}, {attr.MaxSRQ > 0, "srq"}, {attr.MaxMW > 0, "mw"}, {attr.MaxMulticast > 0, "multicast"},
		{device.Provider().CanFault(), "fault"}, {device.Provider().Name() == softProvider, "virtual-clock"},
	} {
		if each.can {
			caps = append(caps, each.name)
		}
	}
	return caps, nil
}

func describePort(port rdmacore.Port) portRow {
	row := portRow{
		Number:    port.Number,
		State:     port.State.String(),
		LinkLayer: port.LinkLayer.String(),
		RateGbps:  port.RateGbps,
		ActiveMTU: port.ActiveMTU,
		MaxMTU:    port.MaxMTU,
		Netdev:    port.Netdev,
		GIDs:      []gidRow{},
		Addresses: []string{},
	}
	for _, address := range port.Addresses() {
		row.Addresses = append(row.Addresses, address.String())
	}
	for _, gid := range port.GIDs {
		described := gidRow{Index: gid.Index, GID: gid.Raw.StringExpanded(), Type: gid.Type}
		if gid.Address.IsValid() {
			described.Address = gid.Address.String()
		}
		row.GIDs = append(row.GIDs, described)
	}
	return row
}
