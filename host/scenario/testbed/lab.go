package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"rdmarun/rdmacore"
)

// Config is what a lab is made of.
type Config struct {
	Provider *rdmacore.Provider
	Roles    []RoleConfig
	// Guests runs the guests; nil when no role is one.
	Guests GuestStarter
	// Output takes what log steps and guests print, a line at a time; never nil.  It is called from
	// several goroutines.
	Output func(role, line string)
}

// RoleConfig is one role.
type RoleConfig struct {
	Name string
	// Group is the role of which this is the instance with that Index; "" for a role that is one party.
	Group  string
	Index  int
	Device string // empty: the provider's default
	Port   int    // of the device; 0: any that is active
	GID    string // an index of the port's table or an IP address; empty: the first that rdma_cm reaches
	CPUs   CPUs
	// Spread wants each instance of the group on a host of its own.
	Spread  bool
	Buffers []BufferConfig
	Guest   *GuestConfig // nil for a role that steps drive
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

// Lab is the state of a running case.
//
// It has one baton: whoever works on the lab holds it, and lets go of it while it waits.  So the branches
// of a parallel step are goroutines of their own, and yet find the lab as one goroutine would.
type Lab struct {
	baton    sync.Mutex
	provider *rdmacore.Provider
	output   func(role, line string)
	guests   GuestStarter
	roles    []*Role
	byName   map[string]*Role
	barriers *barriers
	traffic  map[rdmacore.Opcode]*Traffic
	frees    []*free
	faults   map[string]*Fault
	owners   owners
	// listeners are who waits for one, and the guests that do listen.
	listeners *listeners
	// lost collects completions that were still on a queue when a step destroyed it, and asynchronous events that
	// nobody had waited for.
	lost []string
}

// free is one entry of the stack of things to free.
type free struct {
	what string
	role *Role // nil for what belongs to none
	do   func() error
	done bool
}

// New makes the roles, and gives the baton to the caller.  On failure nothing is left behind.
func New(config Config) (*Lab, error) {
	l := &Lab{
		provider: config.Provider,
		output:   config.Output,
		guests:   config.Guests,
		byName:   make(map[string]*Role),
		barriers: newBarriers(),
		traffic:  make(map[rdmacore.Opcode]*Traffic),
		faults:   make(map[string]*Fault),

		listeners: newListeners(),
	}
	l.baton.Lock()
	for i, roleConfig := range config.Roles {
		role, err := l.newRole(roleConfig, i)
		if err != nil {
			err = &EnvironmentError{"role " + roleConfig.Name, err}
			return nil, errors.Join(append([]error{err}, l.Close()...)...)
		}
		l.roles = append(l.roles, role)
		l.byName[role.Name] = role
	}
	l.asyncLeftovers() // what came before is no leftover of this case
	return l, nil
}

// Role finds a role by name.  The checker has seen to it that names are known, except those that an
// expression makes while running.
func (l *Lab) Role(name string) (*Role, error) {
	if role := l.byName[name]; role != nil {
		return role, nil
	}
	failure := &Failure{What: fmt.Sprintf("there is no role %q", name)}
	group, _, _ := strings.Cut(name, "[")
	instances := 0
	for _, role := range l.roles {
		if role.Group == group && group != "" {
			instances++
		}
	}
	if instances > 0 {
		failure.Hint = fmt.Sprintf("role %s has %d instances, %s[0] to %s[%d]", group, instances, group, group, instances-1)
	}
	return nil, failure
}

// Roles are in the order of the file.
func (l *Lab) Roles() []*Role { return l.roles }

// Provider is what the lab runs on.
func (l *Lab) Provider() *rdmacore.Provider { return l.provider }

// Clock is the provider's time: what is waited for and what is measured runs on it.
func (l *Lab) Clock() *rdmacore.Clock { return l.provider.Clock() }

// Take waits for the baton; Leave lets go of it.
func (l *Lab) Take() { l.baton.Lock() }

// Leave lets another goroutine work on the lab.
func (l *Lab) Leave() { l.baton.Unlock() }

// Outside runs f, which waits and does not touch the lab, without the baton.
func (l *Lab) Outside(f func()) {
	l.baton.Unlock()
	defer l.baton.Lock()
	f()
}

// Output passes a line of a role (empty: the runner's own) to whoever reads the run.
func (l *Lab) Output(role, line string) { l.output(role, line) }

// later puts something on the stack of what Close frees.
func (l *Lab) later(what string, do func() error) *free {
	entry := &free{what: what, do: do}
	l.frees = append(l.frees, entry)
	return entry
}

// later is Lab.later for what dies with the role.
func (r *Role) later(what string, do func() error) *free {
	entry := r.lab.later(r.Name+"'s "+what, do)
	entry.role = r
	return entry
}

// first moves an entry to the top of the stack, to be freed before all that there is now.
func (l *Lab) first(entry *free) {
	if i := slices.Index(l.frees, entry); i >= 0 {
		l.frees = append(slices.Delete(l.frees, i, i+1), entry)
	}
}

// now frees an entry before its time.  What could not be freed is still there, and may be tried again.
func (f *free) now() error {
	if f.done {
		return nil
	}
	err := f.do()
	f.done = err == nil
	return err
}

// freeAll frees entries in the reverse order of their making, and returns why some could not be.  Who uses whom is not
// always in that order, so what is left is tried again, as long as something goes.
func freeAll(entries []*free) []error {
	why := make(map[*free]error) // of the first time: what is gone and was not well is only said to be gone afterwards
	for before := len(entries) + 1; ; before = len(why) {
		for _, entry := range slices.Backward(entries) {
			err := entry.now()
			if err == nil {
				delete(why, entry)
			} else if why[entry] == nil {
				why[entry] = fmt.Errorf("free %s: %w", entry.what, err)
			}
		}
		if len(why) == 0 || len(why) == before {
			break
		}
	}
	var failures []error
	for _, entry := range slices.Backward(entries) {
		if why[entry] != nil {
			failures = append(failures, why[entry])
		}
	}
	return failures
}

// stopGuests stops the guests that still run, all at once: each has the same time to end by itself.
func (l *Lab) stopGuests() {
	var stopped sync.WaitGroup
	for _, role := range l.roles {
		if role.guest != nil && role.guest.Running() {
			stopped.Go(func() { role.guest.running.Stop(context.Background()) })
		}
	}
	stopped.Wait()
}

// Close frees everything in the reverse order of its making and returns what could not be freed.
func (l *Lab) Close() []error {
	var failures []error
	l.stopGuests()
	for _, role := range l.roles {
		if err := role.acknowledge(); err != nil {
			failures = append(failures, fmt.Errorf("acknowledge events of role %s: %w", role.Name, err))
		}
	}
	failures = append(failures, freeAll(l.frees)...)
	l.frees = nil
	return failures
}
