package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"syscall"
)

// delivery is an event, or the failure to make one of what was read, for the goroutine that waits for key.
type delivery struct {
	key   *ID // the id; the listener of a CONNECT_REQUEST
	event *Event
	err   error
}

// awaits reports whether a delivery is one for the id.
func (id *ID) awaits(d delivery) bool { return d.key == id }

// newEventChannel gives a channel of librdmacm its Go side.
func (p *Provider) newEventChannel(native *C.struct_rdma_event_channel) *EventChannel {
	c := &EventChannel{provider: p, c: native, ids: make(map[*C.struct_rdma_cm_id]*ID)}
	c.clock, c.read, c.full, c.drop = p.clock, c.readEvent, enoughEvents, c.dropEvent
	c.key = func(d delivery) *ID { return d.key }
	c.descriptor = func() (int, string) { return int(c.c.fd), "connection manager events" }
	return c
}

// enoughEvents bounds the requests that are kept for a listener by its backlog, for which its maker has the memory.
// The kernel does not count what was read.  Without this bound, a goroutine that waits for something else on the
// channel would keep any number of a peer's requests.  All other events follow a call of the user's, or a connection
// that the user has accepted.
func enoughEvents(unread int, d delivery) bool {
	if d.event != nil && d.event.Type != EventConnectRequest {
		return false
	}
	return unread >= d.key.backlog
}

// dropEvent drops a request beyond the backlog.  A kernel is silent then, and the peer asks again.  A request that was
// read can only be destroyed, which rejects the peer.
func (c *EventChannel) dropEvent(d delivery) {
	if d.event == nil {
		return // the failure to make a child, which is gone
	}
	if d.event.Held() {
		d.event.Ack()
	}
	c.destroyChild(d.event.ID)
}

// nextEvent waits for the next event of key, or with nil of any id.
func (c *EventChannel) nextEvent(ctx context.Context, key *ID) (*Event, error) {
	const op = "rdma_get_cm_event"
	what, wants := "an event of the channel", func(delivery) bool { return true }
	if key != nil {
		what, wants = "an event of the id", key.awaits
	}
	d, came, err := c.next(ctx, wants)
	switch {
	case came:
		return d.event, d.err
	case err != nil:
		return nil, err
	case ctx.Err() == nil:
		return nil, closed(op, "event channel")
	}
	return nil, cancelled(ctx, op, what)
}

// readEvent is the channel's read.
func (c *EventChannel) readEvent() (d delivery, ok bool, err error) {
	var event C.struct_core_event
	result := int(C.core_get_event(c.provider.c, c.c, C.bool(c.holding), &event))
	if result == -int(syscall.EAGAIN) {
		return d, false, errNothing
	}
	if err := check("rdma_get_cm_event", result); err != nil {
		return d, false, err
	}
	d, ok = c.resolve(&event)
	return d, ok, nil
}

// resolve finds or makes the Go objects of an event; false when its id is gone.
func (c *EventChannel) resolve(event *C.struct_core_event) (delivery, bool) {
	e := newEvent(event)
	if e.Type != EventConnectRequest {
		e.ID = c.ids[event.id]
		if e.ID == nil {
			c.release(event)
			return delivery{}, false
		}
		e.hold(e.ID, event.held)
		return delivery{key: e.ID, event: e}, true
	}
	listener := c.ids[event.listen_id]
	if listener == nil {
		c.release(event)
		C.core_destroy_id(c.provider.c, event.id)
		return delivery{}, false
	}
	child := &ID{c: event.id, channel: c, portSpace: listener.portSpace, listener: listener}
	if listener.synchronous {
		child = c.provider.newSyncID(event.id, listener.portSpace, listener)
	} else {
		c.ids[child.c] = child
	}
	e.ID, e.Listener = child, listener
	if err := listener.equip(child); err != nil {
		c.release(event)
		return delivery{key: listener, err: err}, true
	}
	e.hold(listener, event.held)
	return delivery{key: listener, event: e}, true
}

// release acknowledges an event that is not delivered.
func (c *EventChannel) release(event *C.struct_core_event) {
	if event.held != nil {
		C.core_ack_event(c.provider.c, event.held)
	}
}
