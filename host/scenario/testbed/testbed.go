// Package testbed is what a case runs on. It has its roles with their buffers, endpoints, guests and programs, each on
// its provider, and frees all of it.
//
// Everything a testbed makes goes onto one stack, and Close frees it in reverse order, also after
// failures.  One goroutine works on it at a time, the one that has locked it; guests and the barriers they
// call have locks of their own.
package testbed

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"rdmarun/host/guest"
	"rdmarun/host/record"
	"rdmarun/host/scenario/diag"
	"rdmarun/rdmacore"
)

// Config is what a testbed is made of.
type Config struct {
	Providers Providers
	Roles     []RoleConfig
	// Guests runs the guests; nil when no role is one.
	Guests GuestStarter
	// Programs are settings of native programs.
	Programs ProgramSettings
	// Output takes what log steps, guests and programs print, a line at a time; never nil.  A time that is not zero is
	// when it was printed.  It is called from several goroutines.
	Output func(role, line string, at time.Time)
	// Seed is the seed of the random numbers of repeatable guests.
	Seed uint64
}

// RoleConfig is one role.
type RoleConfig struct {
	Name string
	// Group is the role of which this is the instance with that Index; "" for a role that is one party.
	Group string
	Index int
	// Position is the role's place among all of the case, where not all of them are here.
	Position int
	// Provider is the role's own provider.
	Provider ProviderConfig
	Device   string // empty: the provider's default
	Port     int    // of the device; 0: any that is active
	GID      string // an index of the port's table or an IP address; empty: the first that rdma_cm reaches
	CPUs     CPUs
	// Spread puts each instance of the group on a host of its own.
	Spread bool
	// Labels group roles: {rack: r1}.
	Labels map[string]string
	// Host is the name of the host in a lab; empty: the system's own.
	Host    string
	Buffers []BufferConfig
	// Guest and Program are nil for a role that steps drive.
	Guest   *GuestConfig
	Program *ProgramConfig
}

// Written is the name of the role as the file has it.
func (c RoleConfig) Written() string {
	if c.Group != "" {
		return c.Group
	}
	return c.Name
}

// BufferConfig is one buffer of a role.
type BufferConfig struct {
	Name   string
	Size   int // bytes
	Access rdmacore.Access
	// Backing is where the memory comes from.
	Backing rdmacore.Backing
	Fill    Filling
}

// Testbed is the state of a running case.
//
// It has one lock.  A goroutine that works on the testbed holds it, and unlocks it to wait (Unlocked).  So the branches
// of a parallel step may be goroutines of their own, and only one of them works at a time.
type Testbed struct {
	mu        sync.Mutex
	providers Providers
	output    func(role, line string, at time.Time)
	seed      uint64
	guests    GuestStarter
	programs  ProgramSettings
	roles     []*Role
	byName    map[string]*Role
	// elsewhere are the addresses of roles that another process plays.
	elsewhere map[string]netip.Addr
	barriers  barriers
	streams   *guest.Exchange // between guests
	traffic   map[rdmacore.Opcode]*record.Traffic
	frees     []*free
	faults    map[string]*Fault
	// faultCounts are how often healed faults were applied, by their names.
	faultCounts map[string]uint64
	owners      owners
	// listeners are the guests that listen, and the steps that wait for one.
	listeners listeners
	// lost collects completions and asynchronous events that were unread when a step destroyed their object.
	lost []string
	// receives are those that were posted and have not completed, since something is kept, by the queue that has them.
	receives map[any]int
}

// New makes the roles, and returns with the testbed locked.  On failure nothing is left behind.
func New(config Config) (*Testbed, error) {
	t := &Testbed{
		streams:     guest.NewExchange(),
		providers:   config.Providers,
		output:      config.Output,
		seed:        config.Seed,
		guests:      config.Guests,
		programs:    config.Programs,
		byName:      make(map[string]*Role),
		barriers:    barriers{byName: make(map[string]*barrier)},
		traffic:     make(map[rdmacore.Opcode]*record.Traffic),
		faults:      make(map[string]*Fault),
		faultCounts: make(map[string]uint64),
		owners:      owners{roles: make(map[any]*Role)},
		listeners:   listeners{change: newSignal(), guests: make(map[string]*listening)},
	}
	t.mu.Lock()
	first := 0
	if slices.ContainsFunc(config.Roles, func(role RoleConfig) bool { return role.Program != nil }) {
		first = 1 // programs have the address of the device, and other roles other ones
	}
	for i, roleConfig := range config.Roles {
		role, err := t.newRole(roleConfig, first+max(i, roleConfig.Position))
		if err != nil {
			err = &EnvironmentError{"role " + roleConfig.Name, err}
			return nil, errors.Join(append([]error{err}, t.Close()...)...)
		}
		role.provider.CaptureName(role.address, role.Name)
		t.roles = append(t.roles, role)
		t.byName[role.Name] = role
	}
	t.asyncLeftovers() // what came before is no leftover of this case
	return t, nil
}

// Elsewhere notes a role that another process plays.
func (t *Testbed) Elsewhere(name string, address netip.Addr) {
	if t.elsewhere == nil {
		t.elsewhere = make(map[string]netip.Addr)
	}
	t.elsewhere[name] = address
}

// AddressOf is the address of a role, here or elsewhere; false for what is not a role.
func (t *Testbed) AddressOf(name string) (address netip.Addr, is bool) {
	if role := t.byName[name]; role != nil {
		return role.address, true
	}
	address, is = t.elsewhere[name]
	return address, is
}

// Role finds a role by name.  The compiler has checked names, except those that an expression makes during the run.
func (t *Testbed) Role(name string) (*Role, error) {
	if role := t.byName[name]; role != nil {
		return role, nil
	}
	if _, is := t.elsewhere[name]; is {
		return nil, &Failure{
			What: fmt.Sprintf("role %s is played by another process", name),
			Hint: "a step works on the roles of one process; run both in one, or divide it",
		}
	}
	failure := &Failure{What: fmt.Sprintf("there is no role %q", name)}
	group, _, _ := strings.Cut(name, "[")
	instances := 0
	for _, role := range t.roles {
		if role.Group != "" && role.Group == group {
			instances++
		}
	}
	if instances > 0 {
		failure.Hint = fmt.Sprintf(
			"role %s has %d instances, %s[0] to %s[%d]", group, instances, group, group, instances-1,
		)
	}
	return nil, failure
}

// Roles are in the order of the file.
func (t *Testbed) Roles() []*Role { return t.roles }

// hostName is what this host is called; "" where it has no name.
func hostName() string {
	name, _ := os.Hostname() // hosts without a name count as one
	return name
}

// Clock is the time that is waited for and measured on: the provider's, which is the wall clock where there are
// several.
func (t *Testbed) Clock() *rdmacore.Clock { return t.providers.First().Clock() }

// Lock waits until no other goroutine works on the testbed.
func (t *Testbed) Lock() { t.mu.Lock() }

// Unlock lets another goroutine work on the testbed.
func (t *Testbed) Unlock() { t.mu.Unlock() }

// Unlocked runs f without the lock: f waits, and does not touch the testbed.
func (t *Testbed) Unlocked(f func()) {
	t.mu.Unlock()
	defer t.mu.Lock()
	f()
}

// Outside runs f, which waits for another process, without the lock.  No virtual clock may wait for the caller
// meanwhile.
func (t *Testbed) Outside(f func()) {
	t.Unlocked(func() { t.Clock().Outside(f) })
}

// Output passes a line of a role (empty: the runner's own) to the outputs of the run.
func (t *Testbed) Output(role, line string) { t.output(role, line, time.Time{}) }

// Posted counts a work request.
func (t *Testbed) Posted(opcode rdmacore.Opcode, bytes int) {
	entry := t.traffic[opcode]
	if entry == nil {
		entry = &record.Traffic{Operation: opcode.String()}
		t.traffic[opcode] = entry
	}
	entry.Count++
	entry.Bytes += int64(bytes)
}

// Traffic lists what was posted, the most frequent operation first.
func (t *Testbed) Traffic() []record.Traffic {
	var list []record.Traffic
	for _, entry := range t.traffic {
		list = append(list, *entry)
	}
	slices.SortFunc(list, func(a, b record.Traffic) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Operation, b.Operation))
	})
	return list
}

// Failure is an expectation that did not hold: what a test is for.  Everything else that goes wrong (no
// device, a bug) is another kind of error.
type Failure struct {
	What     string // in a few words: "wrong event", "no completion"
	Expected string
	Got      string
	Hint     string // likely causes, or what to look at; may be empty
	// Errno is the result of a call on an object that is gone; 0 for other failures.
	Errno syscall.Errno
	// Span is the key of the file that did not hold; the zero Span is the step itself.
	Span diag.Span
	// Absent means that an awaited thing did not come, which `expect: {none: true}` expects.
	Absent bool
	// Late means that the time of the step was over.  Guests and programs that still run may be why.
	Late bool
	// Ended is the failed guest that the step waited for; nil for another cause.
	Ended *ExecutableEnd
}

// Unwrap is the errno, if there is one.
func (f *Failure) Unwrap() error {
	if f.Errno == 0 {
		return nil
	}
	return f.Errno
}

func (f *Failure) Error() string {
	switch {
	case f.Expected == "" && f.Got == "":
		return f.What
	case f.Expected == "":
		return fmt.Sprintf("%s: got %s", f.What, f.Got)
	}
	return fmt.Sprintf("%s: expected %s, got %s", f.What, f.Expected, f.Got)
}

// EnvironmentError is a fault of the surroundings: no provider, no device, a file that is gone.
type EnvironmentError struct {
	What string
	Err  error
}

func (e *EnvironmentError) Error() string { return e.What + ": " + e.Err.Error() }
func (e *EnvironmentError) Unwrap() error { return e.Err }

// Hint is the remedy, empty when there is none.
func (e *EnvironmentError) Hint() string {
	if OutOfFiles(e.Err) {
		return "raise the limit of file descriptors: ulimit -n 4096; each connection takes some, and each guest"
	}
	return ""
}

// OutOfFiles reports whether the process, or the system, has no descriptor left: a fault of the environment in any
// operation.  The limits of guests are counted elsewhere.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}
