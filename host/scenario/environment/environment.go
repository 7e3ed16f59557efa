package environment

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"

	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

// Device describes a device of a provider.  files is the root of the file system, of which the kernel's devices have
// facts that verbs do not tell; soft's device is in no file system and says all there is itself.
func Device(files fs.FS, device *rdmacore.Device) (record.Device, error) {
	provider := device.Provider().Name()
	found := record.Device{Name: device.Name(), Provider: provider, Driver: Driver(provider, device.Name())}
	attr, err := device.Attr()
	if err != nil {
		return found, fmt.Errorf("describe device %s: %w", found.Name, err)
	}
	found.Firmware, found.NodeGUID = attr.FirmwareVersion, guid(device.GUID())
	ports, err := device.Ports()
	if err != nil {
		return found, fmt.Errorf("describe device %s: %w", found.Name, err)
	}
	port(&found, ports)
	if provider != "soft" {
		kernel(files, &found)
	}
	return found, nil
}

// Driver is the name of a device's driver: by custom the letters that its name begins with, and the number behind
// them where another number follows, as in mlx5_0.
func Driver(provider, device string) string {
	if provider == "soft" {
		return "soft"
	}
	stem, _, numbered := strings.Cut(device, "_")
	if numbered {
		return stem
	}
	return strings.TrimRightFunc(stem, unicode.IsDigit)
}

// port notes the first port that traffic can pass, else the first.
func port(found *record.Device, ports []rdmacore.Port) {
	if len(ports) == 0 {
		return
	}
	chosen := &ports[0]
	for i := range ports {
		if ports[i].State == rdmacore.PortActive {
			chosen = &ports[i]
			break
		}
	}
	found.LinkLayer, found.RateGbps, found.MTU = chosen.LinkLayer.String(), chosen.RateGbps, chosen.ActiveMTU
	found.Netdev = chosen.Netdev
}

// kernel adds what sysfs knows (Documentation/ABI/stable/sysfs-class-infiniband, testing/sysfs-bus-pci).
func kernel(files fs.FS, found *record.Device) {
	folder := "sys/class/infiniband/" + found.Name + "/device"
	found.Module = target(files, folder+"/driver")
	if version := read(files, folder+"/driver/module/version"); version != "" {
		found.Module += " " + version
	}
	if speed := read(files, folder+"/current_link_speed"); speed != "" {
		found.PCI = speed + " x" + read(files, folder+"/current_link_width")
	}
	if node := read(files, folder+"/numa_node"); node != "-1" { // -1: the machine has one
		found.NUMA = node
	}
	if found.Netdev != "" {
		if mtu, err := strconv.Atoi(read(files, "sys/class/net/"+found.Netdev+"/mtu")); err == nil {
			found.NetdevMTU = mtu
		}
	}
}

// guid prints a GUID as the kernel does.
func guid(value uint64) string {
	if value == 0 {
		return ""
	}
	return fmt.Sprintf("%04x:%04x:%04x:%04x", value>>48, value>>32&0xffff, value>>16&0xffff, value&0xffff)
}
