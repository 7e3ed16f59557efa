package testbed

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// signal wakes all goroutines that wait for a change of something.  The lock of that something guards it.
type signal struct {
	changed chan struct{} // closed and replaced at each change
}

func newSignal() signal { return signal{make(chan struct{})} }

func (s *signal) broadcast() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// errExecutableEnded means that a guest or a program can bring about no change any more.
var errExecutableEnded = errors.New("it has ended")

// await waits, without the lock of the testbed, until changed is closed. It returns errExecutableEnded if a guest or a
// program that may cause the change has ended; nil for none.
func (t *Testbed) await(ctx context.Context, changed <-chan struct{}, by executable) (err error) {
	var ended <-chan struct{}
	if by != nil {
		ended = by.done()
	}
	t.Unlocked(func() { err = t.Clock().Await(ctx, changed, ended) })
	select {
	case <-changed:
		return nil
	case <-ended:
		return errExecutableEnded
	default:
		return err
	}
}

// barriers let guests, branches of a parallel step and the timeline wait for each other by name.  A guest arrives when
// it calls rdma.barrier, a branch when it comes to the step; all stay until everyone is there.
type barriers struct {
	mu     sync.Mutex
	byName map[string]*barrier
}

type barrier struct {
	guests   []string     // roles of guests that have arrived
	branches map[int]bool // that have arrived
	steps    int          // that wait here, also those of no branch
	arrival  signal
	opened   chan struct{} // closed when everyone may go on
}

// named finds the barrier of a name, or makes one; mu is held.
func (b *barriers) named(name string) *barrier {
	found := b.byName[name]
	if found == nil {
		found = &barrier{branches: make(map[int]bool), arrival: newSignal(), opened: make(chan struct{})}
		b.byName[name] = found
	}
	return found
}

// arrive is a guest that comes to a barrier: opened is closed when that opens.
func (b *barriers) arrive(name, role string) (opened <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	here := b.named(name)
	here.guests = append(here.guests, role)
	here.arrival.broadcast()
	return here.opened
}

// leave removes a guest that stops waiting at a barrier: it has to come again.  It deletes a barrier without a waiter.
func (b *barriers) leave(name, role string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	here := b.byName[name]
	if here == nil {
		return // it has opened
	}
	if at := slices.Index(here.guests, role); at >= 0 {
		here.guests = slices.Delete(here.guests, at, at+1)
	}
	if len(here.guests)+len(here.branches) == 0 && here.steps == 0 {
		delete(b.byName, name)
	}
}

// leaveStep is a step that waits no more, as the barrier has opened or its time is over.  Its branches have arrived for
// good.
func (b *barriers) leaveStep(here *barrier) {
	b.mu.Lock()
	defer b.mu.Unlock()
	here.steps--
}

// waitingAt is the name of a barrier at which the guest of a role waits, "" when it waits at none.
func (b *barriers) waitingAt(role string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.byName)) {
		if slices.Contains(b.byName[name].guests, role) {
			return name
		}
	}
	return ""
}

// Branch is a branch of a parallel step.
type Branch struct {
	ID   int
	Name string // for messages
}

// Gathering are the branches and roles that meet at a barrier step.
type Gathering struct {
	Name string
	// Roles with guests that must come if they were started.  Roles that steps drive are there by the step itself.
	Roles []string
	// Own are the branches that the step is in, Others those that must come, too.
	Own    []int
	Others []Branch
}

// String is the barrier's name.
func (g Gathering) String() string { return g.Name }

// Barrier is the step. It waits until every branch of the gathering and every guest of its roles has arrived, and fails
// if a guest ends before it comes.
// It releases them once meet has met those on other hosts. meet is nil if all are here.
func (t *Testbed) Barrier(ctx context.Context, gathering Gathering, meet func(ctx context.Context) error) error {
	here := t.barriers.arriveBranches(gathering)
	defer t.barriers.leaveStep(here)
	for {
		guests, branches, changed, err := t.missing(here, gathering)
		if err != nil || changed == nil {
			return err
		}
		if len(guests)+len(branches) == 0 {
			break
		}
		var first *Guest // the one to watch: it must be able to come still
		if len(guests) > 0 {
			first = t.byName[guests[0]].guest
		}
		var by executable
		if first != nil {
			by = first
		}
		if err = t.await(ctx, changed, by); err != nil {
			return stillClosed(gathering.Name, err, first, guests, branches)
		}
	}
	if meet != nil {
		var err error
		t.Outside(func() { err = meet(ctx) })
		if err != nil {
			return err
		}
	}
	t.barriers.open(here, gathering.Name)
	return nil
}

// open lets everyone at a barrier go on and forgets it, so that the name can serve again.
func (b *barriers) open(here *barrier, name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.byName[name] != here {
		return // another step has
	}
	delete(b.byName, name)
	close(here.opened)
	here.arrival.broadcast()
}

// arriveBranches notes the arrival of the branches that the step is in.
func (b *barriers) arriveBranches(gathering Gathering) *barrier {
	b.mu.Lock()
	defer b.mu.Unlock()
	here := b.named(gathering.Name)
	here.steps++
	for _, id := range gathering.Own {
		here.branches[id] = true
	}
	here.arrival.broadcast()
	return here
}

// missing lists the guests and the branches that have not arrived.  A guest that was not started, and one with an end
// that a step has seen, need not come.  One that has ended otherwise is the first: it cannot.  changed is nil when
// another step has opened the barrier.
func (t *Testbed) missing(
	here *barrier, gathering Gathering,
) (guests, branches []string, changed <-chan struct{}, err error) {
	t.barriers.mu.Lock()
	defer t.barriers.mu.Unlock()
	for _, name := range gathering.Roles {
		if _, is := t.elsewhere[name]; is {
			continue
		}
		role, err := t.Role(name)
		if err != nil {
			return nil, nil, nil, err
		}
		switch {
		case role.guest == nil || role.guest.done() == nil || slices.Contains(here.guests, name):
		case running(role.guest):
			guests = append(guests, name)
		case !role.guest.seen:
			guests = slices.Insert(guests, 0, name) // before those that can still come
		}
	}
	for _, other := range gathering.Others {
		if !here.branches[other.ID] {
			branches = append(branches, other.Name)
		}
	}
	if t.barriers.byName[gathering.Name] == here {
		changed = here.arrival.changed
	}
	return guests, branches, changed, nil
}

// stillClosed explains why a wait at a barrier has ended: an expected guest has ended, or the time is over.
func stillClosed(name string, err error, first *Guest, guests, branches []string) *Failure {
	failure := &Failure{What: fmt.Sprintf("barrier %q stays closed", name)}
	switch {
	case errors.Is(err, errExecutableEnded):
		result := first.end()
		failure.What = fmt.Sprintf("the guest of role %s ended before it came to barrier %q", guests[0], name)
		failure.Expected = "rdma.barrier(" + name + ")"
		failure.Got = fmt.Sprintf("%s, exit code %d", result.Outcome, result.Exit)
		failure.Hint, failure.Ended = result.Reason, result.cause()
	case first != nil:
		failure.Late = true
		failure.Expected = "the guests of " + strings.Join(guests, ", ")
		failure.Got = "they run, but have not called rdma.barrier(" + name + ")"
	default:
		failure.Late = true
		failure.Expected = strings.Join(branches, ", ")
		failure.Got = "no such step of them"
		failure.Hint = "a branch that ends, or that leaves the step out by `if`, never comes"
	}
	return failure
}
