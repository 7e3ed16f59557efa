package testbed

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"rdmarun/host/record"
	"rdmarun/host/scenario/diag"
	"rdmarun/rdmacore"
)

// MaxCPU is the highest number that a CPU can have here.
const MaxCPU = 1023

// CPUs are where the threads of a role run; the zero CPUs let them run anywhere.
type CPUs struct {
	List []int
	// Local means the CPUs of the NUMA node of the role's device.
	Local bool
}

// resolve finds the CPUs.  files is the root of the file system, with sysfs, which has the nodes
// (Documentation/ABI/stable/sysfs-devices-node).  A device without a node, such as soft's, is equally near to every
// CPU.
func (c CPUs) resolve(files fs.FS, device *rdmacore.Device) ([]int, error) {
	wanted := c.List
	if c.Local {
		node, err := fs.ReadFile(files, "sys/class/infiniband/"+device.Name()+"/device/numa_node")
		number := strings.TrimSpace(string(node))
		if err != nil || number == "-1" {
			return nil, nil
		}
		list, err := fs.ReadFile(files, "sys/devices/system/node/node"+number+"/cpulist")
		if err != nil {
			return nil, fmt.Errorf("cpu: local_numa: the CPUs of NUMA node %s: %w", number, err)
		}
		if wanted, err = parseCPUs(strings.TrimSpace(string(list))); err != nil {
			return nil, fmt.Errorf("cpu: local_numa: %w", err)
		}
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	allowed, err := allowedCPUs()
	if err != nil {
		return nil, err
	}
	for _, cpu := range wanted {
		if !slices.Contains(allowed, cpu) && !c.Local {
			return nil, fmt.Errorf(
				"cpu: there is no CPU %d for this process; it may run on %s", cpu, FormatCPUs(allowed),
			)
		}
	}
	wanted = slices.DeleteFunc(slices.Clone(wanted), func(cpu int) bool { return !slices.Contains(allowed, cpu) })
	if len(wanted) == 0 {
		return nil, fmt.Errorf(
			"cpu: local_numa: this process may run on no CPU of the node of %s; it may on %s", device.Name(),
			FormatCPUs(allowed),
		)
	}
	return wanted, nil
}

// allowedCPUs are where the process may run.
func allowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		return nil, fmt.Errorf("sched_getaffinity: %w", err)
	}
	var list []int
	for cpu := range MaxCPU + 1 {
		if set.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// parseCPUs reads a list as the kernel writes it, "0-3,8".
func parseCPUs(text string) ([]int, error) {
	var list []int
	if text == "" {
		return nil, nil // a node of memory alone
	}
	for part := range strings.SplitSeq(text, ",") {
		from, to, isRange := strings.Cut(part, "-")
		if !isRange {
			to = from
		}
		first, bad := strconv.Atoi(from)
		last, worse := strconv.Atoi(to)
		if bad != nil || worse != nil || first < 0 || last > MaxCPU || first > last {
			return nil, fmt.Errorf("%q is not a list of CPUs, such as 0-3,8", text)
		}
		for cpu := first; cpu <= last; cpu++ {
			list = append(list, cpu)
		}
	}
	return list, nil
}

// FormatCPUs is the reverse of parseCPUs.
func FormatCPUs(list []int) string {
	sorted := slices.Compact(slices.Sorted(slices.Values(list)))
	var parts []string
	for i := 0; i < len(sorted); {
		end := i
		for end+1 < len(sorted) && sorted[end+1] == sorted[end]+1 {
			end++
		}
		text := strconv.Itoa(sorted[i])
		if end > i {
			text += "-" + strconv.Itoa(sorted[end])
		}
		parts = append(parts, text)
		i = end + 1
	}
	return strings.Join(parts, ",")
}

// counters are values by name.
type counters map[string]uint64

// readCounters reads those of a port and of its device.  files is the root of the file system.
func readCounters(files fs.FS, device *rdmacore.Device, port int) counters {
	if own, counts := device.Counters(); counts {
		return own // soft's
	}
	return kernelCounters(files, device.Name(), port)
}

// kernelCounters reads those of sysfs (Documentation/ABI/stable/sysfs-class-infiniband).  Files that hold no number,
// such as lifespan where the driver has none, are left out.
func kernelCounters(files fs.FS, device string, port int) counters {
	found := make(counters)
	root := "sys/class/infiniband/" + device
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
			if value, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64); err == nil &&
				entry.Name() != "lifespan" {
				found[entry.Name()] = value
			}
		}
	}
	return found
}

// HasCounters reports whether soft or the kernel counts for the devices of all these roles.
func HasCounters(providers Providers, files fs.FS, configs []RoleConfig) bool {
	for _, config := range configs {
		device, err := Device(providers.Of(config.Name), config.Device)
		if err != nil || len(readCounters(files, device, config.counterPort())) == 0 {
			return false
		}
	}
	return true
}

// counterPort is the port that counts for a role.
func (c RoleConfig) counterPort() int { return max(c.Port, 1) }

// counterNames are the counters that the role's device has, sorted.
func (r *Role) counterNames() []string { return slices.Sorted(maps.Keys(r.began)) }

// Counted are by how much each counter has grown since the case began.
func (r *Role) Counted() map[string]uint64 {
	grown := make(map[string]uint64, len(r.began))
	for name, now := range r.count() {
		if before, had := r.began[name]; had {
			grown[name] = now - before
		}
	}
	return grown
}

// Counters are those that have grown since the case began, of each port once; hostOf is the host of a role in a lab.
func (t *Testbed) Counters(hostOf func(role string) string) (list []record.Counter) {
	type port struct {
		provider *rdmacore.Provider
		device   string
		number   int
	}
	seen := make(map[port]bool)
	for _, role := range t.roles {
		of := port{role.provider, role.device.Name(), role.countedPort}
		if role.program != nil && role.provider.Name() == rdmacore.Soft { // each has a device of its own
			of.device += " of " + role.Name
		}
		if seen[of] {
			continue
		}
		seen[of] = true
		grown := role.Counted()
		for _, name := range slices.Sorted(maps.Keys(grown)) {
			if grown[name] > 0 {
				list = append(list, record.Counter{
					Host: hostOf(role.Name), Device: of.device, Name: name, Grew: grown[name],
				})
			}
		}
	}
	return list
}

// CounterDelta is by how much a counter has grown since the case began.  Some begin anew when they are full.
func (r *Role) CounterDelta(name string) (int, error) {
	before, had := r.began[name]
	now, has := r.count()[name]
	if had && has {
		return int(now - before), nil
	}
	names := r.counterNames()
	failure := &Failure{
		What: fmt.Sprintf("device %s counts no %q", r.device.Name(), name), Hint: diag.DidYouMean(name, names),
	}
	if failure.Hint == "" && len(names) > 0 {
		failure.Hint = diag.ThereAre(names)
	}
	return 0, failure
}
