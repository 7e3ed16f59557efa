package testbed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"syscall"

	"rdmarun/rdmacore"
)

// WaitAsync returns the next asynchronous event of the role. It is of its queue pairs and queues, or of its device. A
// device gives each event to one waiting step. ok is false when none came before waiting ended.
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
	} // the role has another device now
}

// nextAsync waits for an event until the role gets another device; the error is context.Canceled then.
func (r *Role) nextAsync(waiting context.Context) (event rdmacore.AsyncEvent, err error) {
	ctx, cancel := context.WithCancel(waiting)
	defer cancel()
	ended, end := context.WithCancel(waiting)
	end()
	for _, former := range r.former { // its last events
		if event, err = former.WaitAsyncEvent(ended, r.accepts); err == nil {
			return event, nil
		}
	}
	device := r.device
	r.waits = append(r.waits, &cancel)
	r.testbed.Unlocked(func() { event, err = device.WaitAsyncEvent(ctx, r.accepts) })
	r.waits = slices.DeleteFunc(r.waits, func(other *context.CancelFunc) bool { return other == &cancel })
	return event, err
}

// accepts reports whether the role may take an event.  Any goroutine that reads the device's events calls it.
func (r *Role) accepts(event rdmacore.AsyncEvent) bool {
	return !event.OfObject() || r.testbed.owners.of(event) == r
}

// moveTo gives the role another device.  Events of the old one can still be read.
func (r *Role) moveTo(device *rdmacore.Device) {
	r.former = append(r.former, r.device)
	r.device = device
	for _, cancel := range r.waits { // at once, or a virtual clock would go on before
		(*cancel)()
	}
}

// subject finds the endpoint of an event, nil for other objects. where names what the event is about, "" for the
// events of ports and devices.
func (t *Testbed) subject(event rdmacore.AsyncEvent) (endpoint *Endpoint, where string) {
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

// asyncLeftovers takes and lists the asynchronous events that no step has read, but not those of guests.
func (t *Testbed) asyncLeftovers() []string {
	var found []string
	for _, device := range t.devices() {
		// Events of a device that cannot be read are no fault of the case.
		events, _ := device.PendingAsyncEvents(func(event rdmacore.AsyncEvent) bool {
			return !event.OfObject() || t.owners.of(event) != nil
		})
		found = append(found, t.unreadAsync(device, events)...)
	}
	return found
}

// recordLostEvents records the unread events of an object that is about to be destroyed: they are
// destroyed with it.
func (t *Testbed) recordLostEvents(of func(rdmacore.AsyncEvent) bool) {
	for _, device := range t.devices() {
		var events []rdmacore.AsyncEvent
		device.PendingAsyncEvents(func(event rdmacore.AsyncEvent) bool {
			if of(event) {
				events = append(events, event)
			}
			return false
		})
		t.lost = append(t.lost, t.unreadAsync(device, events)...)
	}
}

// unreadAsync lists unread events, except those that are not an error.
func (t *Testbed) unreadAsync(device *rdmacore.Device, events []rdmacore.AsyncEvent) []string {
	var found []string
	for _, event := range events {
		endpoint, where := t.subject(event)
		// COMM_EST means that a message came before the connection manager's, GID_CHANGE that the host got or lost an
		// address of an interface (one that has just come up gets its own of IPv6 a second later): neither is a fault
		// of the case.
		if endpoint != nil && endpoint.IgnoreLeftovers || event.Type == rdmacore.AsyncCommEst ||
			event.Type == rdmacore.AsyncGIDChange {
			continue
		}
		found = append(found, fmt.Sprintf("%s: an asynchronous event: %s", cmp.Or(where, device.Name()), event.Type))
	}
	return found
}

// devices are those of the roles that steps drive, present and former, each once.
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

// owners maps each object that has asynchronous events to its role; the objects of guests have none here.  It has a
// lock of its own: a goroutine that reads a device's events uses it without the lock of the testbed.  A new object
// has no events before a later step uses it, so it is added in time.
type owners struct {
	mu    sync.Mutex
	roles map[any]*Role // by *rdmacore.ID, CQ and SRQ
}

func (o *owners) add(object any, role *Role) {
	o.mu.Lock()
	defer o.mu.Unlock()
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

// HoldEvents sets whether events that steps read from now on stay unacknowledged until AckEvent.
func (r *Role) HoldEvents(hold bool) error {
	if r.program != nil {
		return r.program.holdEvents(hold)
	}
	if err := r.channel.HoldEvents(hold); err != nil {
		return err
	}
	r.holding = hold
	return nil
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
	return &Failure{
		What: "no event of " + endpoint.Name + " is unacknowledged", Hint: "hold_events comes before the event is read",
		Errno: syscall.EINVAL,
	}
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

// Leftovers lists what no step has read: completions on a queue and events.  A test that passes
// and leaves messages unread has not seen what happened.
func (t *Testbed) Leftovers() []string {
	found := append(t.lost, t.asyncLeftovers()...)
	for _, role := range t.roles {
		if role.dead {
			continue
		}
		if role.executable() != nil {
			if left := role.leftover(); left != "" {
				found = append(found, left)
			}
			continue
		}
		for _, endpoint := range role.living {
			found = append(found, endpoint.leftovers()...)
		}
		found = append(found, role.unreadEvents()...)
	}
	t.lost = nil
	return found
}

// maxNamed bounds how many are named of the guests and programs that a case was cut off with, and of a queue's
// completions.
const maxNamed = 10

// leftovers takes what is on the endpoint's completion queues, at most as many as fit into each, because a queue may
// be filled meanwhile. It names only the first of many.
func (e *Endpoint) leftovers() (found []string) {
	if e.IgnoreLeftovers {
		return nil
	}
	var batch [16]rdmacore.WC
	for _, direction := range []string{"send", "recv"} {
		cq, err := e.CQ(direction)
		taken := 0
		for n := 1; err == nil && n > 0 && taken < cq.Entries(); taken += n {
			n, err = cq.Poll(batch[:])
			for _, wc := range batch[:min(n, max(maxNamed-taken, 0))] {
				text := fmt.Sprintf(
					"%s %s: a completion on the %s queue: wr_id %d %s", e.Role.Name, e.Name, direction, wc.WRID,
					wc.Status,
				)
				if wc.Status == rdmacore.WCSuccess {
					text += " " + wc.Opcode.String()
				}
				found = append(found, text)
			}
		}
		if more := taken - maxNamed; more > 0 {
			found = append(
				found,
				fmt.Sprintf("%s %s: and %d completions more on the %s queue", e.Role.Name, e.Name, more, direction),
			)
		}
	}
	return found
}

// unreadEvents takes what is on the role's event channel, and frees the connections that unread
// requests brought.
func (r *Role) unreadEvents() []string {
	events, err := r.channel.Pending()
	if err != nil {
		return []string{fmt.Sprintf("%s: the event channel cannot be read: %v", r.Name, err)}
	}
	var found []string
	for _, event := range events {
		r.Read(event)
		owner := r.Owner(event)
		if event.Type == rdmacore.EventConnectRequest {
			r.Adopt("an unread connection request", event.ID)
		}
		if event.Type == rdmacore.EventTimewaitExit || owner != nil && owner.IgnoreLeftovers {
			continue // TIMEWAIT_EXIT comes seconds after every disconnect, and steps do not wait for it
		}
		where := r.Name
		if owner != nil {
			where += " " + owner.Name
		}
		text := fmt.Sprintf("%s: an unread event: %s", where, event.Type)
		if event.Status != 0 {
			text += fmt.Sprintf(" status %s", rdmacore.StatusString(event.Type, event.Status, rdmacore.PortSpaceTCP))
		}
		found = append(found, text)
	}
	return found
}

// Owner is the endpoint that an event belongs to: the listener for a connection request.
func (r *Role) Owner(event *rdmacore.Event) *Endpoint {
	for _, endpoint := range r.living {
		if endpoint.id == event.ID || endpoint.id == event.Listener {
			return endpoint
		}
	}
	return nil
}
