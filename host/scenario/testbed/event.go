package testbed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"rdmarun/rdmacore"
)

// asyncWait is one call of WaitAsync that waits for a device.
type asyncWait struct{ cancel context.CancelFunc }

// WaitAsync returns the next asynchronous event of the role: of its queue pairs and queues, or of its device, which
// tells each once, to one of those that wait for it.  ok is false when none came before waiting ended.
func (r *Role) WaitAsync(waiting context.Context) (event rdmacore.AsyncEvent, ok bool, err error) {
	for {
		event, err = r.nextAsync(waiting)
		switch {
		case err == nil:
			return event, true, nil
		case waiting.Err() != nil:
			return event, false, nil
		case !errors.Is(err, context.Canceled):
			return event, false, err
		}
	} // the device is another one now
}

// nextAsync waits for an event until the role gets another device: canceled then.
func (r *Role) nextAsync(waiting context.Context) (event rdmacore.AsyncEvent, err error) {
	ctx, cancel := context.WithCancel(waiting)
	defer cancel()
	now, end := context.WithCancel(waiting)
	end()
	for _, former := range r.former { // what it said last
		if event, err = former.WaitAsyncEvent(now, r.concerned); err == nil {
			return event, nil
		}
	}
	wait := &asyncWait{cancel}
	r.waits = append(r.waits, wait)
	device := r.device
	r.testbed.Unlocked(func() { event, err = device.WaitAsyncEvent(ctx, r.concerned) })
	r.waits = slices.DeleteFunc(r.waits, func(other *asyncWait) bool { return other == wait })
	return event, err
}

// concerned tells whether an event is one that the role may take.  It is called by whoever reads the device.
func (r *Role) concerned(event rdmacore.AsyncEvent) bool {
	return !event.OfObject() || r.testbed.owners.of(event) == r
}

// moveTo gives the role another device.  What the old one has said is still to be had.
func (r *Role) moveTo(device *rdmacore.Device) {
	r.former = append(r.former, r.device)
	r.device = device
	for _, wait := range r.waits {
		wait.cancel()
	}
}

// ownerOf finds the endpoint that an event is about, nil for other objects; where says what it is about, "" for the
// events of ports and devices.
func (t *Testbed) ownerOf(event rdmacore.AsyncEvent) (endpoint *Endpoint, where string) {
	for _, role := range t.roles {
		for _, endpoint := range role.living {
			switch {
			case event.QP != nil && endpoint.id.QP() == event.QP,
				event.CQ != nil && (endpoint.id.SendCQ() == event.CQ || endpoint.id.RecvCQ() == event.CQ):
				return endpoint, role.Name + " " + endpoint.Name
			}
		}
		for _, object := range role.objects {
			if object.concerns(event) {
				return nil, object.text()
			}
		}
	}
	return nil, ""
}

// asyncLeftovers takes the asynchronous events that nobody waited for, but not those of guests, and lists them.
func (t *Testbed) asyncLeftovers() []string {
	var found []string
	for _, device := range t.devices() {
		// What cannot be read is not there.
		events, _ := device.PendingAsyncEvents(func(event rdmacore.AsyncEvent) bool {
			return !event.OfObject() || t.owners.of(event) != nil
		})
		found = append(found, t.unasked(device, events)...)
	}
	return found
}

// lose keeps in mind the events that nobody waited for of what is about to be destroyed, with which they go.  It is
// undone by the function that it returns.
func (t *Testbed) lose(of func(rdmacore.AsyncEvent) bool) (undo func()) {
	before := len(t.lost)
	for _, device := range t.devices() {
		var events []rdmacore.AsyncEvent
		device.PendingAsyncEvents(func(event rdmacore.AsyncEvent) bool {
			if of(event) {
				events = append(events, event)
			}
			return false
		})
		t.lost = append(t.lost, t.unasked(device, events)...)
	}
	return func() { t.lost = t.lost[:before] }
}

// unasked says of events that nobody waited for them, unless that is no fault.
func (t *Testbed) unasked(device *rdmacore.Device, events []rdmacore.AsyncEvent) []string {
	var found []string
	for _, event := range events {
		endpoint, where := t.ownerOf(event)
		if endpoint != nil && endpoint.IgnoreLeftovers || event.Type == rdmacore.AsyncCommEst {
			continue // COMM_EST tells of a message that overtook the connection manager's, which is no fault
		}
		if where == "" {
			where = device.Name()
		}
		found = append(found, fmt.Sprintf("%s: an asynchronous event: %s", where, event.Type))
	}
	return found
}

// devices are those of the roles that steps drive, each once, with those that they had before.
func (t *Testbed) devices() []*rdmacore.Device {
	var found []*rdmacore.Device
	for _, role := range t.roles {
		if role.guest != nil {
			continue
		}
		for _, device := range append(slices.Clone(role.former), role.device) {
			if !slices.Contains(found, device) {
				found = append(found, device)
			}
		}
	}
	return found
}

// owners tells whose the objects are that asynchronous events are of: of a role that steps drive, or of nobody here,
// as those of guests.  It has a lock of its own, for whoever reads a device's events asks it, and does not hold the
// lock of the testbed.  An object has no events before a step after the one that made it uses it, so none comes too early.
type owners struct {
	mu    sync.Mutex
	roles map[any]*Role // by *rdmacore.ID, CQ and SRQ
}

func (o *owners) add(object any, role *Role) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.roles == nil {
		o.roles = make(map[any]*Role)
	}
	o.roles[object] = role
}

func (o *owners) remove(object any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.roles, object)
}

// of finds the role of an event; nil when it is of no role's object.
func (o *owners) of(event rdmacore.AsyncEvent) *Role {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, object := range [...]any{event.ID, event.CQ, event.SRQ} {
		if role := o.roles[object]; role != nil {
			return role
		}
	}
	return nil
}

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
