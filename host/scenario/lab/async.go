package lab

import (
	"context"
	"fmt"
	"time"

	"rdmarun/rdmacore"
)

// asyncEvent is an asynchronous event that nobody has taken.
type asyncEvent struct {
	device *rdmacore.Device
	event  rdmacore.AsyncEvent
}

// asyncSlice is how long one wait for a device's events lasts at most: another branch that waits for the
// same device may have been given this one's event.
const asyncSlice = 100 * time.Millisecond

// WaitAsync returns the next asynchronous event of the role: of its queue pairs and completion queues, or
// of its device.  ok is false when none came before waiting ended.
func (r *Role) WaitAsync(waiting context.Context) (event rdmacore.AsyncEvent, ok bool, err error) {
	for {
		if event, ok := r.takeAsync(); ok {
			return event, true, nil
		}
		if waiting.Err() != nil {
			return event, false, nil
		}
		slice, cancel := r.lab.Clock().WithTimeout(waiting, asyncSlice)
		r.lab.Outside(func() { event, err = r.device.GetAsyncEvent(slice) })
		ended := slice.Err() != nil
		cancel()
		switch {
		case err == nil:
			r.lab.async = append(r.lab.async, asyncEvent{r.device, event})
		case !ended:
			return event, false, err
		}
	}
}

// takeAsync takes the role's first event that waits to be taken.
func (r *Role) takeAsync() (rdmacore.AsyncEvent, bool) {
	for i, each := range r.lab.async {
		owner, _, _ := r.lab.ownerOf(each.event)
		if each.device == r.device && (owner == r || owner == nil) {
			r.lab.async = append(r.lab.async[:i:i], r.lab.async[i+1:]...)
			return each.event, true
		}
	}
	return rdmacore.AsyncEvent{}, false
}

// ownerOf finds the role of an event, nil for those of ports and devices, and the endpoint that it is about,
// nil for other objects; where says what it is about.
func (l *Lab) ownerOf(event rdmacore.AsyncEvent) (owner *Role, endpoint *Endpoint, where string) {
	for _, role := range l.roles {
		for _, endpoint := range role.living {
			switch {
			case event.QP != nil && endpoint.id.QP() == event.QP,
				event.CQ != nil && (endpoint.id.SendCQ() == event.CQ || endpoint.id.RecvCQ() == event.CQ):
				return role, endpoint, role.Name + " " + endpoint.Name
			}
		}
		for _, object := range role.objects {
			if object.concerns(event) {
				return role, nil, object.text()
			}
		}
	}
	return nil, nil, ""
}

// drainAsync takes what the devices have without waiting.
func (l *Lab) drainAsync() {
	seen := make(map[*rdmacore.Device]bool)
	for _, role := range l.roles {
		if role.guest != nil || seen[role.device] {
			continue
		}
		seen[role.device] = true
		for range 1000 { // a device that never stops must not keep the case from ending
			now, cancel := context.WithTimeout(context.Background(), time.Millisecond)
			if l.Clock().Virtual() {
				cancel()
				now, cancel = l.Clock().WithTimeout(context.Background(), 0)
			}
			event, err := role.device.GetAsyncEvent(now)
			cancel()
			if err != nil {
				break
			}
			l.async = append(l.async, asyncEvent{role.device, event})
		}
	}
}

// asyncLeftovers lists asynchronous events that nobody waited for.
func (l *Lab) asyncLeftovers() []string {
	l.drainAsync()
	var found []string
	for _, each := range l.async {
		_, endpoint, where := l.ownerOf(each.event)
		if endpoint != nil && endpoint.IgnoreLeftovers || each.event.Type == rdmacore.AsyncCommEst {
			continue // COMM_EST tells of a message that overtook the connection manager's, which is no fault
		}
		if where == "" {
			where = each.device.Name()
		}
		found = append(found, fmt.Sprintf("%s: an asynchronous event: %s", where, each.event.Type))
	}
	l.async = nil
	return found
}
