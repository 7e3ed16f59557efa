package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"
)

// neededModules are those that verbs and rdma_cm open device files of.
var neededModules = []string{"ib_uverbs", "rdma_ucm"}

func modules(_ context.Context, m Machine) (Status, string, string) {
	var loaded, missing []string
	for _, module := range neededModules {
		// A module that is built into the kernel is there too, as long as it has parameters or users. In the
		// end only the device files count.
		if exists(m, "sys/module/"+module) {
			loaded = append(loaded, module)
		} else {
			missing = append(missing, module)
		}
	}
	if missing == nil {
		return OK, strings.Join(loaded, " "), ""
	}
	detail := "not loaded: " + strings.Join(missing, " ") + "; without them only provider soft works"
	return Warn, detail, "modprobe -a " + strings.Join(missing, " ")
}

func devices(_ context.Context, m Machine) (Status, string, string) {
	names := deviceNames(m)
	if len(names) > 0 {
		return OK, strings.Join(names, " "), ""
	}
	return Skip, "none; provider soft needs none", "without hardware, a software device: rdma link add rxe0 type " +
		"rxe netdev eth0"
}

// deviceFiles looks at the files that libibverbs and librdmacm open.
func deviceFiles(_ context.Context, m Machine) (Status, string, string) {
	if len(deviceNames(m)) == 0 {
		return Skip, "there is no device", ""
	}
	files := wantedFiles(m)
	for _, file := range files {
		err := m.Open(file)
		switch {
		case errors.Is(err, fs.ErrPermission):
			return Fail, file + " may not be opened by this user",
				"a udev rule or a group for " + file + "; in a container: --device " + file
		case errors.Is(err, fs.ErrNotExist):
			return Fail, file + " is missing", "modprobe rdma_ucm ib_uverbs; in a container: --device /dev/infiniband"
		case err != nil:
			return Fail, fmt.Sprintf("%s: %v", file, err), ""
		}
	}
	return OK, strings.Join(files, " "), ""
}

// wantedFiles are those of rdma_cm and of every device.
func wantedFiles(m Machine) []string {
	files := []string{"/dev/infiniband/rdma_cm"}
	for _, name := range deviceNames(m) {
		if file := verbsFile(m, name); file != "" {
			files = append(files, "/dev/infiniband/"+file)
		}
	}
	return files
}

// verbsFile is the device file of a device, "uverbs0".
func verbsFile(m Machine, device string) string {
	entries, err := fs.ReadDir(m.Files, "sys/class/infiniband_verbs")
	if err != nil {
		return ""
	}
	for _, entry := range entries {
		if read(m, "sys/class/infiniband_verbs/"+entry.Name()+"/ibdev") == device {
			return entry.Name()
		}
	}
	return ""
}

// container names the kind of container that this seems to be, "" for none.
func container(m Machine) string {
	switch {
	case exists(m, ".dockerenv"):
		return "docker"
	case exists(m, "run/.containerenv"):
		return "podman"
	}
	if name := read(m, "run/systemd/container"); name != "" {
		return name
	}
	groups := read(m, "proc/1/cgroup")
	for _, known := range []struct{ word, name string }{
		{"kubepods", "kubernetes"}, {"docker", "docker"}, {"libpod", "podman"}, {"containerd", "containerd"},
		{"lxc", "lxc"},
	} {
		if strings.Contains(groups, known.word) {
			return known.name
		}
	}
	for _, variable := range strings.Split(read(m, "proc/1/environ"), "\x00") {
		if name, ok := strings.CutPrefix(variable, "container="); ok && name != "" {
			return name
		}
	}
	return ""
}

// containers names the flags that a container was started without.  Devices of the host appear in /sys even if the
// container may not use them.
func containers(_ context.Context, m Machine) (Status, string, string) {
	name := container(m)
	if name == "" {
		return OK, "not in one", ""
	}
	inside := "in a container (" + name + ")"
	if len(deviceNames(m)) == 0 {
		return OK, inside + " without RDMA devices; provider soft needs nothing of it", ""
	}
	var lacks, flags, pod []string
	lack := func(what, flag, ofPod string) {
		lacks, flags, pod = append(lacks, what), append(flags, flag), append(pod, ofPod)
	}
	for _, p := range portsOf(m) {
		if netdev := p.netdev(m); netdev != "" && !exists(m, "sys/class/net/"+netdev) {
			lack("the network interface "+netdev, "--network host", "hostNetwork: true")
			break
		}
	}
	for _, file := range wantedFiles(m) {
		if m.Open(file) != nil {
			lack(file, "--device /dev/infiniband", "a resource of the RDMA device plugin")
			break
		}
	}
	if m.LockedMemory < enoughLockedMemory {
		lack("locked memory", "--ulimit memlock=-1", "capabilities: {add: [IPC_LOCK]}")
	}
	if lacks == nil {
		return OK, inside + ", with devices, interfaces and locked memory", ""
	}
	fix := "run it with " + strings.Join(flags, " ")
	if name == "kubernetes" {
		fix = "in the pod: " + strings.Join(pod, ", ")
	}
	return Warn, inside + " without " + strings.Join(lacks, ", "), fix
}

// enoughLockedMemory is what small tests register; measurements take more.
const enoughLockedMemory = 64 << 20

func lockedMemory(_ context.Context, m Machine) (Status, string, string) {
	if m.LockedMemory == math.MaxUint64 {
		return OK, "unlimited", ""
	}
	detail := fmt.Sprintf("RLIMIT_MEMLOCK is %dKiB", m.LockedMemory>>10)
	if m.LockedMemory >= enoughLockedMemory {
		return OK, detail, ""
	}
	status := Warn
	if len(deviceNames(m)) > 0 {
		status = Fail
	}
	return status, detail + "; to register more on a device fails with ENOMEM",
		"ulimit -l unlimited (service: LimitMEMLOCK=infinity, container: --ulimit memlock=-1)"
}

// restricts looks at what a process that runs guests can drop.
func restricts(_ context.Context, m Machine) (Status, string, string) {
	detail, err := m.Sandbox()
	if err != nil {
		what, fix, _ := strings.Cut(err.Error(), ": ")
		return Warn, detail + "; --sandbox strict fails: " + what, fix
	}
	return OK, detail, ""
}

func selfTest(ctx context.Context, m Machine) (Status, string, string) {
	detail, err := m.SelfTest(ctx)
	if err != nil {
		return Fail, err.Error(), "this is a bug in rdmarun or in its build; please report it"
	}
	return OK, "self-test " + detail, ""
}
