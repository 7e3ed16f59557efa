package testbed

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/rdmacore"
)

// counters are values by name.
type counters map[string]uint64

// readCounters reads those of a port and of its device (Documentation/ABI/stable/sysfs-class-infiniband).  files is the
// root of the file system.  Files that hold no number, such as lifespan where the driver has none, are left out; soft's
// device is in no file system.
func readCounters(files fs.FS, device *rdmacore.Device, port int) counters {
	found := make(counters)
	root := "sys/class/infiniband/" + device.Name()
	ports := fmt.Sprintf("%s/ports/%d/", root, port)
	for _, folder := range []string{root + "/hw_counters", ports + "hw_counters", ports + "counters"} {
		entries, err := fs.ReadDir(files, folder)
		if err != nil {
			continue // iWARP devices have no port counters, some drivers no hw_counters
		}
		for _, entry := range entries {
			text, err := fs.ReadFile(files, path.Join(folder, entry.Name()))
			if err != nil {
				continue
			}
			if value, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil && entry.Name() != "lifespan" {
				found[entry.Name()] = value
			}
		}
	}
	return found
}

// HasCounters tells whether the kernel counts for the devices of all these roles.
func HasCounters(provider *rdmacore.Provider, files fs.FS, configs []RoleConfig) bool {
	for _, config := range configs {
		device, err := deviceNamed(provider, config.Device)
		if err != nil || len(readCounters(files, device, config.counterPort())) == 0 {
			return false
		}
	}
	return true
}

// counterPort is the port whose counters are a role's.
func (c RoleConfig) counterPort() int { return max(c.Port, 1) }

// CounterNames are the counters that the role's device has, sorted.
func (r *Role) CounterNames() []string { return slices.Sorted(maps.Keys(r.began)) }

// CounterDelta is by how much a counter has grown since the case began.  Some begin anew when they are full.
func (r *Role) CounterDelta(name string) (int, error) {
	before, had := r.began[name]
	now, has := readCounters(r.files, r.device, r.port)[name]
	if had && has {
		return int(now - before), nil
	}
	names := r.CounterNames()
	failure := &Failure{What: fmt.Sprintf("device %s counts no %q", r.device.Name(), name), Hint: diag.DidYouMean(name, names)}
	if failure.Hint == "" && len(names) > 0 {
		failure.Hint = diag.ThereAre(names)
	}
	return 0, failure
}
