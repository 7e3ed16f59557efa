package testbed

import (
	"sync"

	"rdmarun/rdmacore"
)

// owners tells whose the objects are that asynchronous events are of: of a role that steps drive, or of nobody here,
// as those of guests.  It has a lock of its own, for whoever reads a device's events asks it, and does not hold the
// baton.  An object has no events before a step after the one that made it uses it, so none comes too early.
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
