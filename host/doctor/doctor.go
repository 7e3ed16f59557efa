// Package doctor finds out why RDMA will not work on a host, and what to type. It is a list of checks over the files
// of /sys, /proc and /dev, and a self-test of the embedded provider. Tests run the checks on made-up files.
package doctor

import (
	"context"
	"io/fs"
	"strings"
)

// Status is how a check ended.
type Status string

// The statuses, from good to bad.
const (
	OK   Status = "ok"
	Skip Status = "skip" // it does not apply to this machine
	Warn Status = "warn" // it works, with a surprise to come
	Fail Status = "fail"
)

// Finding is the result of one check.
type Finding struct {
	ID     string `json:"id"`
	Title  string `json:"title"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to type
}

// Machine is what the checks look at.
type Machine struct {
	// Files is the root of the file system.
	Files fs.FS
	// Open reports whether a device file can be opened for reading and writing; the error has the reason.
	Open func(path string) error
	// LockedMemory is the limit of locked memory in bytes.
	LockedMemory uint64
	// Loopback connects to this machine through its device and describes the result in a few words.
	// ErrNoDevice when there is none.
	Loopback func(ctx context.Context) (string, error)
	// Peer is another host, by name or address; "" for none.  Resolve finds the way to it.
	Peer    string
	Resolve func(ctx context.Context, host string) (Route, error)
	// Sandbox names the kernel's means to restrict processes that run guests; the error names what --sandbox strict
	// lacks.
	Sandbox func() (string, error)
	// Choose lets a kernel program choose which of the sockets of one UDP port gets a packet; the error explains why
	// that is not possible.
	Choose func() error
	// SelfTest runs traffic on the embedded provider and describes the result in a few words.
	SelfTest func(ctx context.Context) (string, error)
}

// check is one question.
type check struct {
	id, title string
	run       func(ctx context.Context, m Machine) (status Status, detail, fix string)
}

// checks are all questions, in the order in which one leads to the next.
func checks() []check {
	return []check{
		{"modules", "kernel modules", modules},
		{"devices", "RDMA devices", devices},
		{"device-files", "/dev/infiniband", deviceFiles},
		{"ports", "ports", ports},
		{"gids", "GID tables", gidTables},
		{"mtu", "MTU", mtus},
		{"locked-memory", "locked memory", lockedMemory},
		{"containers", "containers", containers},
		{"loopback", "rdma_cm loopback", loopback},
		{"peer", "peer", peer},
		{"roce-port", "RoCE v2 port", roceSockets},
		{"port-sharing", "RoCE v2 port, shared", sharing},
		{"sandbox", "sandbox", restricts},
		{"soft", "soft provider", selfTest},
	}
}

// Examine asks all questions.
func Examine(ctx context.Context, m Machine) []Finding {
	var findings []Finding
	for _, c := range checks() {
		finding := Finding{ID: c.id, Title: c.title}
		finding.Status, finding.Detail, finding.Fix = c.run(ctx, m)
		findings = append(findings, finding)
	}
	return findings
}

const infiniband = "sys/class/infiniband"

func exists(m Machine, path string) bool {
	_, err := fs.Stat(m.Files, path)
	return err == nil
}

// read returns a file's text without the spaces around it, "" when there is none.
func read(m Machine, path string) string {
	text, err := fs.ReadFile(m.Files, path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

func names(m Machine, folder string) []string {
	entries, err := fs.ReadDir(m.Files, folder)
	if err != nil {
		return nil
	}
	var list []string
	for _, entry := range entries {
		list = append(list, entry.Name())
	}
	return list
}

func deviceNames(m Machine) []string { return names(m, infiniband) }

// port is a port of a device.
type port struct{ device, number, folder string }

func (p port) String() string { return p.device + "/" + p.number }

func portsOf(m Machine) []port {
	var list []port
	for _, device := range deviceNames(m) {
		for _, number := range names(m, infiniband+"/"+device+"/ports") {
			list = append(list, port{device, number, infiniband + "/" + device + "/ports/" + number})
		}
	}
	return list
}

// active reports whether traffic can pass: the file has "4: ACTIVE".
func (p port) active(m Machine) bool { return strings.HasPrefix(read(m, p.folder+"/state"), "4:") }

// iwarp reports whether the port is one of an RNIC, an iWARP device (enum rdma_node_type).
func (p port) iwarp(m Machine) bool {
	return strings.Contains(read(m, infiniband+"/"+p.device+"/node_type"), "RNIC")
}

// netdev is the network interface behind the port.
func (p port) netdev(m Machine) string {
	if name := read(m, p.folder+"/gid_attrs/ndevs/0"); name != "" {
		return name
	}
	return read(m, infiniband+"/"+p.device+"/parent") // rxe and siw name it there
}
