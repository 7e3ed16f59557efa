package lab

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// barriers lets guests and the timeline meet by name.  A guest arrives when it calls rdma.barrier and
// stays until the step of that name has seen everyone; the step waits for the guests that run.
type barriers struct {
	mu     sync.Mutex
	byName map[string]*meeting
}

type meeting struct {
	arrived []string      // roles that wait
	changed chan struct{} // closed and replaced at each arrival
	opened  chan struct{} // closed when everyone may go on
}

func newBarriers() *barriers { return &barriers{byName: make(map[string]*meeting)} }

func (b *barriers) meeting(name string) *meeting {
	m := b.byName[name]
	if m == nil {
		m = &meeting{changed: make(chan struct{}), opened: make(chan struct{})}
		b.byName[name] = m
	}
	return m
}

// arrive is a guest at a barrier.
func (b *barriers) arrive(ctx context.Context, name, role string) error {
	b.mu.Lock()
	m := b.meeting(name)
	m.arrived = append(m.arrived, role)
	close(m.changed)
	m.changed = make(chan struct{})
	b.mu.Unlock()
	select {
	case <-m.opened:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Barrier is the step: it waits until every guest among the roles that runs has arrived, and lets
// them go on.  Roles that steps drive are there by the step itself.
func (l *Lab) Barrier(ctx context.Context, name string, roles []string) error {
	for {
		m, changed, missing, err := l.missing(name, roles)
		if err != nil {
			return err
		}
		if len(missing) == 0 {
			close(m.opened)
			return nil
		}
		ended := l.byName[missing[0]].guest.running.Done()
		event := 0
		l.Outside(func() {
			select {
			case <-changed:
			case <-ended:
				event = 1
			case <-ctx.Done():
				event = 2
			}
		})
		switch event {
		case 1:
			result := l.byName[missing[0]].guest.ended()
			return &Failure{
				What:     fmt.Sprintf("the guest of role %s ended before it came to barrier %q", missing[0], name),
				Expected: "rdma.barrier(" + name + ")",
				Got:      fmt.Sprintf("%s, exit code %d", result.Outcome, result.Exit),
				Hint:     result.Reason,
			}
		case 2:
			return &Failure{
				What:     fmt.Sprintf("barrier %q stays closed", name),
				Expected: "the guests of " + strings.Join(missing, ", "),
				Got:      "they run, but have not called rdma.barrier(" + name + ")",
			}
		}
	}
}

// missing lists the running guests that have not arrived.  With nobody missing the meeting is taken off
// the list, so that the name can serve again.
func (l *Lab) missing(name string, roles []string) (*meeting, <-chan struct{}, []string, error) {
	var guests []string
	for _, roleName := range roles {
		role, err := l.Role(roleName)
		if err != nil {
			return nil, nil, nil, err
		}
		if role.guest != nil && role.guest.Running() {
			guests = append(guests, roleName)
		}
	}
	l.barriers.mu.Lock()
	defer l.barriers.mu.Unlock()
	m := l.barriers.meeting(name)
	missing := slices.DeleteFunc(guests, func(role string) bool { return slices.Contains(m.arrived, role) })
	if len(missing) == 0 {
		delete(l.barriers.byName, name)
	}
	return m, m.changed, missing, nil
}
