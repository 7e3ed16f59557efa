package doctor

import (
	"context"
	"strings"
)

// container names what the machine seems to be inside of, "" for nothing.
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
		{"kubepods", "kubernetes"}, {"docker", "docker"}, {"libpod", "podman"}, {"containerd", "containerd"}, {"lxc", "lxc"},
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

// containers tells which flags a container lacks.  Devices of the host show in /sys, whatever the container may
// use of them.
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
