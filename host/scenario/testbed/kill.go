package testbed

import (
	"context"
	"errors"
	"fmt"
)

// Kill ends a role as the death of its process would: a guest is stopped, and of another role everything is
// destroyed, the newest first, as the kernel does for a process that is gone.  Its peers see what they
// would see then.  What lay on its queues died with it.
func (r *Role) Kill(ctx context.Context) error {
	if r.dead {
		return &Failure{What: fmt.Sprintf("role %s is dead already", r.Name)}
	}
	r.dead = true
	defer r.lab.listeners.tell() // who waits for it to listen need not wait longer
	if r.guest != nil {
		if r.guest.running == nil {
			return &Failure{What: fmt.Sprintf("the guest of role %s was not started", r.Name)}
		}
		r.lab.Outside(func() { r.guest.running.Stop(ctx) })
		r.guest.ended()
		return nil
	}
	if err := r.acknowledge(); err != nil {
		return err
	}
	r.living = nil
	if events, err := r.channel.Pending(); err == nil {
		for _, event := range events {
			if event.Listener != nil && event.ID != event.Listener {
				r.Adopt("an unread connection request", event.ID)
			}
		}
		r.living = nil
	}
	var own []*free
	for _, entry := range r.lab.frees {
		if entry.role == r {
			own = append(own, entry)
		}
	}
	return errors.Join(freeAll(own)...)
}

// alive says why a dead role can do nothing.
func (r *Role) alive() error {
	if r.dead {
		return &Failure{What: fmt.Sprintf("role %s is dead", r.Name), Hint: "a step before killed it"}
	}
	return nil
}
