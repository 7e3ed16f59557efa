package rdmacore

// #include "core.h"
import "C"

import (
	"context"
	"errors"
	"slices"
	"syscall"
)

// errNoEvent is drain's "nothing more to read".
var errNoEvent = errors.New("no event")

// promotion is the empty delivery: whoever gets it shall lead.
var promotion delivery

// next waits for the next event of key, or of any id.
func (c *EventChannel) next(ctx context.Context, key *ID) (*Event, error) {
	const op = "rdma_get_cm_event"
	if c.provider.clock.Virtual() {
		return c.nextVirtually(ctx, key)
	}
	w := &waiting{key: key, got: make(chan delivery, 1)}
	c.mu.Lock()
	if d, ok := c.dequeue(w); ok {
		c.mu.Unlock()
		return d.event, d.err
	}
	if ctx.Err() != nil {
		c.mu.Unlock()
		return nil, c.gaveUp(ctx, key)
	}
	c.waiting = append(c.waiting, w)
	lead := !c.led
	c.led = true
	c.mu.Unlock()

	var d delivery
	if !lead {
		select {
		case d = <-w.got:
			lead = d == promotion
		case <-ctx.Done():
		}
	}
	var failure error
	if lead {
		failure = c.lead(ctx, w)
	}
	if d = c.leave(w, d, lead); d != promotion {
		return d.event, d.err
	}
	if failure != nil {
		return nil, failure
	}
	if ctx.Err() == nil {
		return nil, closed(op, "event channel")
	}
	return nil, c.gaveUp(ctx, key)
}

// nextVirtually is next on a virtual clock, where every wait looks for itself and nobody leads.
func (c *EventChannel) nextVirtually(ctx context.Context, key *ID) (*Event, error) {
	var d delivery
	var failure error
	found := c.provider.clock.virtual.wait(ctx, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		failure = c.drain(func() (ok bool) {
			d, ok = c.dequeue(&waiting{key: key})
			return ok
		})
		return failure != errNoEvent
	})
	switch {
	case !found:
		return nil, c.gaveUp(ctx, key)
	case failure != nil:
		return nil, failure
	}
	return d.event, d.err
}

func (c *EventChannel) gaveUp(ctx context.Context, key *ID) error {
	what := "an event of the channel"
	if key != nil {
		what = "an event of the id"
	}
	return cancelled(ctx, "rdma_get_cm_event", what)
}

// lead reads events until one has come for w, ctx ends, or reading fails.
func (c *EventChannel) lead(ctx context.Context, w *waiting) error {
	waiter, failure := c.watch()
	if failure != nil {
		return failure
	}
	waiter.wait(ctx, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		failure = c.drain(func() bool {
			// Pending may have read what w wants between w's promotion and now.
			if len(w.got) == 0 {
				if d, ok := c.dequeue(w); ok {
					w.got <- d
				}
			}
			return len(w.got) != 0
		})
		return failure != errNoEvent
	})
	if failure == errNoEvent {
		return nil
	}
	return failure
}

// leave takes w out, with what it has got (d, or what came since), and passes on the lead.
func (c *EventChannel) leave(w *waiting, d delivery, lead bool) delivery {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.Index(c.waiting, w); at >= 0 {
		c.waiting = slices.Delete(c.waiting, at, at+1)
	}
	if d == promotion {
		select {
		case d = <-w.got:
			lead = lead || d == promotion
		default:
		}
	}
	if lead {
		c.handOver()
	}
	return d
}

// handOver makes the first that waits the leader.
func (c *EventChannel) handOver() {
	c.led = false
	for _, w := range c.waiting {
		if len(w.got) == 0 {
			c.led = true
			w.got <- promotion
			return
		}
	}
}

// dequeue takes the first queued event that w wants.
func (c *EventChannel) dequeue(w *waiting) (delivery, bool) {
	at := slices.IndexFunc(c.queue, w.wants)
	if at < 0 {
		return promotion, false
	}
	d := c.queue[at]
	c.queue = slices.Delete(c.queue, at, at+1)
	return d, true
}

// drain reads and delivers events until enough says so; errNoEvent when there are no more.  The caller
// holds mu.
func (c *EventChannel) drain(enough func() bool) error {
	for !enough() {
		var event C.struct_core_event
		result := int(C.core_get_event(c.provider.c, c.c, C.bool(c.holding), &event))
		if result == -int(syscall.EAGAIN) {
			return errNoEvent
		}
		if err := check("rdma_get_cm_event", result); err != nil {
			return err
		}
		if d, ok := c.resolve(&event); ok {
			c.deliver(d)
		}
	}
	return nil
}

// deliver hands d to the first that wants it.  Served is out of the list at once: it must not be promoted
// any more, for it will not look again.
func (c *EventChannel) deliver(d delivery) {
	for at, w := range c.waiting {
		if len(w.got) == 0 && w.wants(d) {
			w.got <- d
			c.waiting = slices.Delete(c.waiting, at, at+1)
			return
		}
	}
	c.queue = append(c.queue, d)
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

// release acknowledges an event that nobody will get.
func (c *EventChannel) release(event *C.struct_core_event) {
	if event.held != nil {
		C.core_ack_event(c.provider.c, event.held)
	}
}
