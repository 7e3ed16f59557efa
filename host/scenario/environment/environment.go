// Package environment describes where a run takes place, for comparisons of runs: the machine, and the
// devices that cases ran on.
package environment

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

// Machine lists facts of the machine under names of one word: kernel, cpu (the model), governor (of the processors'
// frequency).  files is the root of the file system; what it does not have is left out.
func Machine(files fs.FS) map[string]string {
	facts := make(map[string]string)
	for name, value := range map[string]string{
		"kernel": read(files, "proc/sys/kernel/osrelease"), "cpu": processor(files), "governor": governors(files),
	} {
		if value != "" {
			facts[name] = value
		}
	}
	return facts
}

// processor is the model of the first processor: "model name" on x86, "CPU part" and the like elsewhere.
func processor(files fs.FS) string {
	known := make(map[string]string)
	for line := range strings.Lines(read(files, "proc/cpuinfo")) {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); ok && known[name] == "" {
			known[name] = strings.TrimSpace(value)
		}
	}
	if known["model name"] == "" && known["CPU part"] != "" {
		return "implementer " + known["CPU implementer"] + " part " + known["CPU part"]
	}
	return known["model name"]
}

// governors are those of all processors, each named once; most machines have one, and virtual ones none.
func governors(files fs.FS) string {
	paths, err := fs.Glob(files, "sys/devices/system/cpu/cpu[0-9]*/cpufreq/scaling_governor")
	if err != nil {
		return ""
	}
	var names []string
	for _, path := range paths {
		if name := read(files, path); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), " ")
}

// Device describes a device of a provider. files is the root of the file system, which has facts of the kernel's
// devices that verbs do not have. soft's device is in no file system.
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
	if link := device.Provider().Link(); link != "" {
		found.Virtual = link + ": " + rdmacore.LinkText(link)
	} else {
		kernel(files, &found)
	}
	return found, nil
}

// Driver is the name of a device's driver. By custom it is the letters that its name begins with, and the number
// behind them where another number follows, as in mlx5_0.
func Driver(provider, device string) string {
	if provider == rdmacore.Soft {
		return rdmacore.Soft
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

// kernel adds the facts of sysfs (Documentation/ABI/stable/sysfs-class-infiniband, testing/sysfs-bus-pci).
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

// read returns a file's text without the spaces around it, "" when there is none.
func read(files fs.FS, name string) string {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// target is the last element of where a symbolic link leads, "" for what is none.
func target(files fs.FS, name string) string {
	link, err := fs.ReadLink(files, name)
	if err != nil {
		return ""
	}
	return path.Base(link)
}
