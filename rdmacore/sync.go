package rdmacore

// #include "core/core.h"
import "C"

import (
	"cmp"
	"context"
	"syscall"
)

// Synchronous ids.
//
// rdma_create_id(3) without an event channel gives an id with calls that wait for what they start. Here the call starts
// it, on a channel of the id's own that does not block. Complete waits for its end in the Go runtime's poller, or until
// its context ends.
//
// A call may come to its end at once, where the event is there already, and gives the result itself.

// CreateID makes a synchronous id (rdma_create_id(3) with channel NULL).
func (p *Provider) CreateID(ps PortSpace) (*ID, error) {
	const op = "rdma_create_id"
	if p == nil || p.c == nil {
		return nil, closed(op, "provider")
	}
	var native *C.struct_rdma_cm_id
	if made := p.ask(func() C.int { return C.core_create_sync_id(p.c, C.int(ps), &native) }); made.result < 0 {
		errno := syscall.Errno(-made.result)
		if errno == syscall.ENOSYS {
			return nil, fail(op, errno, "this provider has no synchronous ids (rdma_get_request)")
		}
		return nil, &Error{Op: op, Errno: errno, Why: cmp.Or(made.refusal, deviceReason(op, errno))}
	}
	return p.newSyncID(native, ps, nil), nil
}

// newSyncID gives a synchronous id its Go side.  The channel lasts as long as the id is synchronous.
func (p *Provider) newSyncID(native *C.struct_rdma_cm_id, ps PortSpace, listener *ID) *ID {
	id := &ID{c: native, portSpace: ps, listener: listener, synchronous: true}
	id.channel = p.privateChannel(id)
	return id
}

func (p *Provider) privateChannel(id *ID) *EventChannel {
	c := p.newEventChannel(id.c.channel)
	c.private, c.ids[id.c] = true, id
	return c
}

// retire ends the Go side of a private channel, which librdmacm has freed.
func (c *EventChannel) retire() {
	c.waiter.close()
	c.c = nil
}

// Synchronous reports whether the id's calls are to be completed with Complete.
func (id *ID) Synchronous() bool { return id.open() && id.synchronous }

// start makes a call that a synchronous id has to be completed for.
func (id *ID) start(op, address string, call func() C.int) error {
	if !id.synchronous {
		return id.call(op, address, call)
	}
	c := id.channel
	c.mu.Lock()
	defer c.mu.Unlock()
	if id.pending != "" {
		return fail(op, syscall.EBUSY, "%s of this id has not come to its end; Complete it, or destroy the id",
			id.pending)
	}
	answer := c.provider.ask(call)
	result := answer.result
	C.core_forget_request(id.native(), id.c)
	id.noteRequest()
	if result == -int(syscall.EAGAIN) {
		id.pending = op
		return nil
	}
	// The event that ends the call may have been there already.
	if event := id.nativeEvent(); result < 0 && event != nil && event.syncResult() == result {
		return endedBy(op, result, event)
	}
	return id.explain(op, answer, address)
}

// Complete waits for the end of what the last call of a synchronous id started, as the call itself does in librdmacm.
// Any next event of the id ends it. The event is kept (Event), and its status is the error: ECONNREFUSED for REJECTED,
// else the errno of the status. It returns nil at once when nothing is under way. So it always does for ids on an
// event channel. The error wraps ctx.Err() when ctx ends first; then Complete may be called again.
func (id *ID) Complete(ctx context.Context) error {
	if !id.open() {
		return closed("rdma_get_cm_event", "id")
	}
	c := id.channel
	c.mu.Lock()
	op := id.pending
	c.mu.Unlock()
	if op == "" {
		return nil
	}
	waiter, err := c.watch()
	if err != nil {
		return err
	}
	result := 0
	if !waiter.wait(ctx, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		result = id.takeCompletion()
		return result != -int(syscall.EAGAIN)
	}) {
		if ctx.Err() == nil {
			return closed(op, "id")
		}
		return cancelled(ctx, op, "its end")
	}
	return id.ended(op, result)
}

// Pending reports whether a call of a synchronous id has not come to its end.
func (id *ID) Pending() bool {
	if !id.open() {
		return false
	}
	id.channel.mu.Lock()
	defer id.channel.mu.Unlock()
	return id.pending != ""
}

// takeCompletion takes the event that ends the pending call.  Events that were read before the id became
// synchronous come first.  mu is held.
func (id *ID) takeCompletion() int {
	if d, ok := id.channel.dequeue(id.awaits); ok && d.event != nil {
		id.completed, id.pending = d.event, ""
		return d.event.syncResult()
	}
	result := int(C.core_complete(id.native(), id.c))
	if result != -int(syscall.EAGAIN) {
		id.completed, id.pending = id.nativeEvent(), ""
		id.noteRequest()
	}
	return result
}

// syncResult is the errno, negative, that librdmacm's synchronous functions make of an event.
func (e *Event) syncResult() int {
	switch {
	case e.Status == 0:
		return 0
	case e.Type == EventRejected:
		return -int(syscall.ECONNREFUSED)
	case e.Status < 0:
		return e.Status
	}
	return -e.Status
}

// ended words the end of a synchronous call.
func (id *ID) ended(op string, result int) error { return endedBy(op, result, id.Event()) }

func endedBy(op string, result int, event *Event) error {
	err := check(op, result)
	if err == nil {
		return nil
	}
	failure := err.(*Error)
	if event != nil && event.Err() != nil {
		failure.Why = event.Err().Error()
		if event.Type == EventAddrInfoError {
			failure.Errno = syscall.EINVAL // as GetAddrInfo; the status is the resolver's, which is no errno
		}
	}
	return failure
}

// Event is the event that ended the last call of a synchronous id, or the request that created the id. It is nil when
// there is none (the event member of struct rdma_cm_id).
func (id *ID) Event() *Event {
	if !id.open() || !id.synchronous {
		return nil
	}
	id.channel.mu.Lock()
	defer id.channel.mu.Unlock()
	if event := id.nativeEvent(); event != nil {
		return event
	}
	return id.completed
}

// nativeEvent is a copy of what librdmacm keeps.  mu of the channel is held.
func (id *ID) nativeEvent() *Event {
	var c C.struct_core_event
	if C.core_sync_event(id.c, &c) < 0 {
		return nil
	}
	event := newEvent(&c)
	event.ID = id
	if event.Type == EventConnectRequest {
		event.Listener = id.listener
	}
	return event
}
