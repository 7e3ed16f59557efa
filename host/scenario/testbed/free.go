package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// free is one entry of the stack of things to free.
type free struct {
	what string
	role *Role // nil for what belongs to none
	do   func() error
	done bool
}

// deferFree puts something on the stack of what Close frees.
func (t *Testbed) deferFree(what string, do func() error) *free {
	entry := &free{what: what, do: do}
	t.frees = append(t.frees, entry)
	return entry
}

// deferFree is Testbed.deferFree for what Kill frees, too.
func (r *Role) deferFree(what string, do func() error) *free {
	entry := r.testbed.deferFree(r.Name+"'s "+what, do)
	entry.role = r
	return entry
}

// freeFirst moves an entry to the top of the stack, to be freed before everything made so far.
func (t *Testbed) freeFirst(entry *free) {
	if i := slices.Index(t.frees, entry); i >= 0 {
		t.frees = append(slices.Delete(t.frees, i, i+1), entry)
	}
}

// freeNow frees an entry before its turn.  One that could not be freed may be tried again.
func (f *free) freeNow() error {
	if f.done {
		return nil
	}
	err := f.do()
	f.done = err == nil
	return err
}

// freeAll frees entries in the reverse order of their making, and returns why some could not be freed.  An object may
// use one that is newer, so what is left is tried again, as long as something is freed.
func freeAll(entries []*free) []error {
	why := make(map[*free]error) // of the first attempt: later ones may only report that the object is gone
	for before := len(entries) + 1; ; before = len(why) {
		for _, entry := range slices.Backward(entries) {
			err := entry.freeNow()
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

// Close frees everything in the reverse order of its making and returns what could not be freed.
func (t *Testbed) Close() []error {
	var failures []error
	t.stopExecutables()
	for _, role := range t.roles {
		if err := role.acknowledge(); err != nil {
			failures = append(failures, fmt.Errorf("acknowledge events of role %s: %w", role.Name, err))
		}
	}
	failures = append(failures, freeAll(t.frees)...)
	t.frees = nil
	return failures
}

// Kill ends a role as the death of its process would. A guest is stopped, and a program gets SIGKILL. Everything of
// another role is destroyed, the newest first, as the kernel does for a process that has died. Its peers see what they
// would see then. Its queues are lost with what is on them.
func (r *Role) Kill(ctx context.Context) error {
	if r.dead {
		return &Failure{What: fmt.Sprintf("role %s is dead already", r.Name)}
	}
	r.dead = true
	defer r.testbed.listeners.announce() // steps that wait for it to listen need not wait longer
	if r.guest != nil {
		if r.guest.running == nil {
			return &Failure{What: fmt.Sprintf("the guest of role %s was not started", r.Name)}
		}
		r.testbed.Unlocked(func() { r.guest.running.Stop(ctx) })
		r.guest.end()
		return nil
	}
	if r.program != nil {
		return r.program.kill(ctx)
	}
	if err := r.acknowledge(); err != nil {
		return err
	}
	if events, err := r.channel.Pending(); err == nil {
		for _, event := range events {
			if event.Listener != nil && event.ID != event.Listener {
				r.Adopt("an unread connection request", event.ID)
			}
		}
	}
	r.living = nil
	var own []*free
	for _, entry := range r.testbed.frees {
		if entry.role == r {
			own = append(own, entry)
		}
	}
	return errors.Join(freeAll(own)...)
}

// alive is a Failure when the role is dead.
func (r *Role) alive() error {
	if r.dead {
		return &Failure{What: fmt.Sprintf("role %s is dead", r.Name), Hint: "a step before killed it"}
	}
	return nil
}

// Busy runs f between two roles without the lock: f has its own objects, and does not touch the
// testbed.  Kill of one of the roles ends f's context and waits for f.
func (t *Testbed) Busy(ctx context.Context, what string, f func(ctx context.Context) error, roles ...*Role) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	for _, role := range roles {
		if err := role.alive(); err != nil {
			return err
		}
		if p := role.executable(); p != nil {
			return &Failure{What: fmt.Sprintf("role %s is a %s, which works for itself", role.Name, p.what())}
		}
		entry := role.deferFree(what, func() error {
			cancel(&Failure{
				What: fmt.Sprintf("role %s died during %s", role.Name, what), Hint: "a parallel step killed it",
			})
			t.Clock().Outside(func() { <-done })
			return nil
		})
		defer func() { entry.done = true }()
	}
	var err error
	t.Unlocked(func() {
		defer close(done)
		err = f(ctx)
	})
	var died *Failure
	if err != nil && errors.As(context.Cause(ctx), &died) {
		return died
	}
	return err
}
