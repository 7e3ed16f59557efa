package rdmacore

// #include "core/core.h"
import "C"

import (
	"errors"
	"syscall"
)

// Destroy frees the id (rdma_destroy_id(3)).  Its connection ends, and its unread events are dropped.  Children of a
// listener with an unread CONNECT_REQUEST are destroyed, which rejects their peers.
//
// EBUSY while it has a QP or an SRQ, and, a second later, when events of it are not acknowledged: the error
// names them.
func (id *ID) Destroy() error {
	const op = "rdma_destroy_id"
	if !id.open() {
		return closed(op, "id")
	}
	if id.qp != nil {
		return fail(op, syscall.EBUSY, "the id has a QP; rdma_destroy_qp comes first")
	}
	if id.srq != nil {
		return fail(op, syscall.EBUSY, "the id has an SRQ; rdma_destroy_srq comes first")
	}
	if err := id.readyToGo(op); err != nil {
		return err
	}
	c := id.channel
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.destroy(id)
}

// readyToGo waits until nothing keeps the id, for at most acknowledgeTimeout.
func (id *ID) readyToGo(op string) error {
	id.channel.releaseUnread(id, id.awaits)
	return id.waitAcknowledged(op)
}

// DestroyEP frees the QP and the SRQ, if there are any, and the id (rdma_destroy_ep(3)), or nothing: EBUSY as Destroy.
func (id *ID) DestroyEP() error {
	const op = "rdma_destroy_ep"
	if !id.open() {
		return closed(op, "id")
	}
	if err := id.readyToGo(op); err != nil {
		return err
	}
	if id.qp != nil {
		if err := id.DestroyQP(); err != nil {
			return err
		}
	}
	if id.srq != nil {
		if err := id.DestroySRQ(); err != nil {
			return err
		}
	}
	return id.Destroy()
}

// releaseUnread acknowledges what was read in an id's name and never handed out: to its user it is unread.
func (c *EventChannel) releaseUnread(id *ID, of func(delivery) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[id] == 0 {
		return
	}
	for _, d := range c.queue {
		if of(d) && d.event != nil && d.event.held != nil {
			d.event.Ack()
		}
	}
}

// destroy destroys an id with everything that waits in its name.  The caller holds mu.
func (c *EventChannel) destroy(id *ID) error {
	holder := id.listener != nil && id.holdsRequest
	if err := id.call("rdma_destroy_id", "", func() C.int {
		return C.core_destroy_id(c.provider.c, id.c)
	}); err != nil {
		return err
	}
	if holder {
		c.provider.held.Lock()
		id.holdsRequest = false
		id.listener.unacknowledged[EventConnectRequest]--
		c.provider.held.Unlock()
	}
	delete(c.ids, id.c)
	id.c = nil
	if c.private {
		c.retire()
	}
	if c.counts[id] == 0 {
		return nil
	}
	var children []*ID
	c.discard(func(d delivery) bool {
		if d.key == id && d.event != nil && d.event.Listener == id {
			children = append(children, d.event.ID)
		}
		return d.key == id
	})
	var failures []error
	for _, child := range children {
		failures = append(failures, c.destroyChild(child))
	}
	return errors.Join(failures...)
}

// destroyChild destroys a child with an unread request.  No goroutine uses a child on a channel of its own either, so
// its lock is free.
func (c *EventChannel) destroyChild(child *ID) error {
	var failure error
	if child.qp != nil {
		failure = child.DestroyQP()
	}
	if child.channel != c {
		child.channel.mu.Lock()
		defer child.channel.mu.Unlock()
	}
	return errors.Join(failure, child.channel.destroy(child))
}
