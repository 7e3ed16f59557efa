package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"syscall"
)

// GetRequest waits for the next connection request of a synchronous listener (rdma_get_request(3)) and
// returns its child, synchronous as well, with a QP if the listener's endpoint was made with attributes
// for one.  The request, private data included, is the child's Event until the child's next call; as long as
// a child holds it the listener cannot be destroyed.
//
// EINVAL for an id that is not synchronous, or does not listen (librdmacm would wait for ever).  The error
// wraps ctx.Err() when ctx ends first.
func (id *ID) GetRequest(ctx context.Context) (*ID, error) {
	const op = "rdma_get_request"
	switch {
	case !id.open():
		return nil, closed(op, "id")
	case !id.synchronous:
		return nil, fail(op, syscall.EINVAL, "the id is on an event channel, where requests are CONNECT_REQUEST events")
	case !id.listening:
		return nil, fail(op, syscall.EINVAL, "the id does not listen, so no request would ever come")
	}
	c := id.channel
	waiter, err := c.watch()
	if err != nil {
		return nil, err
	}
	var child *ID
	var failure error
	if !waiter.wait(ctx, func() (done bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		child, done, failure = id.takeRequest(op)
		return done
	}) {
		if ctx.Err() == nil {
			return nil, closed(op, "id")
		}
		return nil, cancelled(ctx, op, "a connection request on "+id.name())
	}
	return child, failure
}

// takeRequest takes a request that is there.  mu is held.
func (id *ID) takeRequest(op string) (child *ID, done bool, err error) {
	if d, ok := id.channel.dequeue(id.awaits); ok {
		switch {
		case d.event == nil:
			return nil, true, d.err
		case d.event.Type != EventConnectRequest:
			return nil, true, fail(op, syscall.EINVAL, "%s came in place of a request", d.event.Type)
		}
		return d.event.ID, true, nil
	}
	var native *C.struct_rdma_cm_id
	result := int(C.core_get_request(id.native(), id.c, &native))
	if result == -int(syscall.EAGAIN) {
		return nil, false, nil
	}
	if result < 0 {
		failure := check(op, result).(*Error)
		if event := id.nativeEvent(); event != nil && failure.Errno != syscall.ENOSYS {
			failure.Why = event.Type.String() + " came in place of a request"
		}
		return nil, true, failure
	}
	child = id.channel.provider.newSyncID(native, id.portSpace, id)
	child.noteRequest()
	if err := id.equip(child); err != nil {
		return nil, true, err
	}
	return child, true, nil
}

// equip gives a child the QP that its listener was made with attributes for; a child that cannot have it is
// destroyed, which rejects the peer.
func (id *ID) equip(child *ID) error {
	if id.childQP == nil {
		return nil
	}
	err := child.CreateQP(id.childPD, *id.childQP)
	if err != nil {
		child.channel.destroy(child)
	}
	return err
}

// noteRequest keeps account of whether the id holds the request that made it, of which the listener has to
// know.
func (id *ID) noteRequest() {
	if id.listener == nil {
		return
	}
	held := &id.channel.provider.held
	held.Lock()
	defer held.Unlock()
	holds := bool(C.core_holds_request(id.c))
	if holds && !id.holdsRequest {
		id.listener.unacknowledged[EventConnectRequest]++
	} else if !holds && id.holdsRequest {
		id.listener.unacknowledged[EventConnectRequest]--
	}
	id.holdsRequest = holds
}
