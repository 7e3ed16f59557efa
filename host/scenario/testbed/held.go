package testbed

import (
	"errors"
	"slices"
	"syscall"

	"rdmarun/rdmacore"
)

// HoldEvents says whether events that steps read from now on stay unacknowledged until AckEvent.
func (r *Role) HoldEvents(hold bool) error {
	err := r.channel.HoldEvents(hold)
	if err == nil {
		r.holding = hold
	}
	return err
}

// Read notes an event that was read, for AckEvent.
func (r *Role) Read(event *rdmacore.Event) {
	if r.holding {
		r.held = append(r.held, event)
	}
}

// AckEvent acknowledges the oldest event of an endpoint that is not acknowledged.
func (r *Role) AckEvent(endpoint *Endpoint) error {
	for i, event := range r.held {
		if event.ID == endpoint.id || event.Listener == endpoint.id {
			r.held = slices.Delete(r.held, i, i+1)
			return event.Ack()
		}
	}
	return &Failure{What: "no event of " + endpoint.Name + " is unacknowledged", Hint: "hold_events comes before the event is read", Errno: syscall.EINVAL}
}

// acknowledge ends the holding of events, so that ids can be destroyed.
func (r *Role) acknowledge() error {
	var failures []error
	if r.holding {
		failures = append(failures, r.HoldEvents(false))
	}
	for _, event := range r.held {
		failures = append(failures, event.Ack())
	}
	r.held = nil
	return errors.Join(failures...)
}
