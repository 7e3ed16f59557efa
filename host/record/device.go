package record

import (
	"strconv"
	"strings"
)

// Device is what cases ran on, as far as a comparison of two runs needs to know it.  What does not exist or cannot be
// found is empty.
type Device struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	Driver   string `json:"driver,omitempty"` // by the device's name: mlx5, rxe, soft
	// Module is the kernel module behind it, with its version where it has one of its own.
	Module    string  `json:"module,omitempty"`
	Firmware  string  `json:"firmware,omitempty"`
	NodeGUID  string  `json:"node_guid,omitempty"` // four groups of four digits, as the kernel prints it
	LinkLayer string  `json:"link_layer,omitempty"`
	RateGbps  float64 `json:"rate_gbps,omitempty"` // of the first active port
	MTU       int     `json:"mtu,omitempty"`       // of the path, in bytes of payload
	Netdev    string  `json:"netdev,omitempty"`
	NetdevMTU int     `json:"netdev_mtu,omitempty"`
	PCI       string  `json:"pci,omitempty"`  // speed and width of the slot's link
	NUMA      string  `json:"numa,omitempty"` // the node that it is near
}

// Fact is something known, under a name of few words.
type Fact struct{ Name, Value string }

// Facts lists what is known of the device, in the order of the fields.
func (d *Device) Facts() []Fact {
	var list []Fact
	add := func(name, value string) {
		if value != "" {
			list = append(list, Fact{name, value})
		}
	}
	add("provider", d.Provider)
	add("driver", d.Driver)
	add("module", d.Module)
	add("firmware", d.Firmware)
	add("node GUID", d.NodeGUID)
	rate := ""
	if d.RateGbps > 0 {
		rate = strconv.FormatFloat(d.RateGbps, 'f', -1, 64) + " Gbit/s"
	}
	add("link", strings.TrimSpace(d.LinkLayer))
	add("rate", rate)
	add("MTU", positive(d.MTU))
	add("network interface", d.Netdev)
	add("interface MTU", positive(d.NetdevMTU))
	add("PCI", d.PCI)
	add("NUMA node", d.NUMA)
	return list
}

func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}
