package testbed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// barriers lets guests, branches of a parallel step and the timeline meet by name.  A guest arrives when it
// calls rdma.barrier, a branch when it comes to the step; all stay until everyone is there.
type barriers struct {
	mu     sync.Mutex
	byName map[string]*meeting
}

type meeting struct {
	arrived  []string      // roles of guests that wait
	branches map[int]bool  // that wait
	changed  chan struct{} // closed and replaced at each arrival
	opened   chan struct{} // closed when everyone may go on
}

func newBarriers() *barriers { return &barriers{byName: make(map[string]*meeting)} }

// meeting finds the meeting of a name; mu is held.
func (b *barriers) meeting(name string) *meeting {
	m := b.byName[name]
	if m == nil {
		m = &meeting{branches: make(map[int]bool), changed: make(chan struct{}), opened: make(chan struct{})}
		b.byName[name] = m
	}
	return m
}

// tell wakes those who wait for a change; the barriers' mu is held.
func (m *meeting) tell() {
	close(m.changed)
	m.changed = make(chan struct{})
}

// arrive is a guest at a barrier.
func (b *barriers) arrive(ctx context.Context, name, role string) error {
	b.mu.Lock()
	m := b.meeting(name)
	m.arrived = append(m.arrived, role)
	m.tell()
	b.mu.Unlock()
	select {
	case <-m.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Branch is a branch of a parallel step.
type Branch struct {
	ID   int
	Name string // for messages
}

// Gathering is who meets at a barrier step.
type Gathering struct {
	Name string
	// Roles whose guests must come if they run.  Those that steps drive are there by the step itself.
	Roles []string
	// Own are the branches that the step stands in, Others those that must come, too.
	Own    []int
	Others []Branch
}

// Barrier is the step: it waits until every branch of the gathering and every guest among its roles that runs
// has arrived, and lets them go on.
func (t *Testbed) Barrier(ctx context.Context, gathering Gathering) error {
	m := t.come(gathering)
	var err error
	for err == nil {
		var changed <-chan struct{}
		var guests, branches []string
		if changed, guests, branches, err = t.missing(m, gathering); err != nil || changed == nil {
			break
		}
		if len(guests) > 0 {
			err = t.awaitGuest(ctx, gathering.Name, guests, changed)
		} else if t.Unlocked(func() { err = t.Clock().Await(ctx, changed) }); err != nil {
			err = &Failure{
				What:     fmt.Sprintf("barrier %q stays closed", gathering.Name),
				Expected: strings.Join(branches, ", "),
				Got:      "no such step of them",
				Hint:     "a branch that ends, or whose `if` leaves the step out, never comes",
			}
		}
	}
	return err
}

// come notes the arrival of the step's own branches.
func (t *Testbed) come(gathering Gathering) *meeting {
	t.barriers.mu.Lock()
	defer t.barriers.mu.Unlock()
	m := t.barriers.meeting(gathering.Name)
	for _, id := range gathering.Own {
		m.branches[id] = true
	}
	m.tell()
	return m
}

// missing lists who has not arrived: guests that run, and branches.  With nobody missing it opens the barrier
// and takes the meeting off the list, so that the name can serve again; changed is nil then, and when another
// has opened it.
func (t *Testbed) missing(m *meeting, gathering Gathering) (changed <-chan struct{}, guests, branches []string, err error) {
	for _, name := range gathering.Roles {
		role, err := t.Role(name)
		if err != nil {
			return nil, nil, nil, err
		}
		if role.guest != nil && role.guest.Running() {
			guests = append(guests, name)
		}
	}
	t.barriers.mu.Lock()
	defer t.barriers.mu.Unlock()
	if t.barriers.byName[gathering.Name] != m {
		return nil, nil, nil, nil
	}
	guests = slices.DeleteFunc(guests, func(role string) bool { return slices.Contains(m.arrived, role) })
	for _, other := range gathering.Others {
		if !m.branches[other.ID] {
			branches = append(branches, other.Name)
		}
	}
	if len(guests)+len(branches) > 0 {
		return m.changed, guests, branches, nil
	}
	delete(t.barriers.byName, gathering.Name)
	close(m.opened)
	m.tell()
	return nil, nil, nil, nil
}

// awaitGuest waits until someone arrives, and sees to it that the first guest that is missing still can.
func (t *Testbed) awaitGuest(ctx context.Context, name string, missing []string, changed <-chan struct{}) error {
	guest := t.byName[missing[0]].guest
	ended, late := false, false
	t.Unlocked(func() {
		t.Clock().Outside(func() {
			select {
			case <-changed:
			case <-guest.running.Done():
				ended = true
			case <-ctx.Done():
				late = true
			}
		})
	})
	switch {
	case ended:
		result := guest.ended()
		return &Failure{
			What:     fmt.Sprintf("the guest of role %s ended before it came to barrier %q", missing[0], name),
			Expected: "rdma.barrier(" + name + ")",
			Got:      fmt.Sprintf("%s, exit code %d", result.Outcome, result.Exit),
			Hint:     result.Reason,
		}
	case late:
		return &Failure{
			What:     fmt.Sprintf("barrier %q stays closed", name),
			Expected: "the guests of " + strings.Join(missing, ", "),
			Got:      "they run, but have not called rdma.barrier(" + name + ")",
		}
	}
	return nil
}

// waits is the name of a barrier at which the guest of a role waits, "" when it waits at none.
func (b *barriers) waits(role string) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.byName)) {
		if slices.Contains(b.byName[name].arrived, role) {
			return name
		}
	}
	return ""
}
