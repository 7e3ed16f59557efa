package doctor

import (
	"context"
	"io/fs"
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

// Finding is the end of one check.
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
	// Open tells whether a device file can be opened for reading and writing; the error says why not.
	Open func(path string) error
	// LockedMemory is the limit of locked memory in bytes.
	LockedMemory uint64
	// Loopback connects to this machine through its device and tells in a few words what it did.
	// ErrNoDevice when there is none.
	Loopback func(ctx context.Context) (string, error)
	// Peer is another host, by name or address; "" for none.  Resolve finds the way to it.
	Peer    string
	Resolve func(ctx context.Context, host string) (Route, error)
	// SelfTest runs traffic on the embedded provider and tells in a few words what it did.
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
