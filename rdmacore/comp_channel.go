package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"errors"
	"syscall"
)

// CompChannel carries the completion events of CQs (ibv_create_comp_channel(3)).  A goroutine that waits for the events
// of one CQ, and reads one of another CQ, keeps it for other calls.
type CompChannel struct {
	c        *C.struct_ibv_comp_channel // nil once destroyed
	provider *Provider
	device   *Device // of CreateCompChannel; nil for one that comes and goes with its CQ

	// The mailbox's mu guards the rest, too.
	mailbox[*CQ, *CQ]
	cqs map[*C.struct_ibv_cq]*CQ
}

// maxEvents is how many events of one CQ are kept: each has been asked for, and one is as good as many.
const maxEvents = 64

// CreateCompChannel makes a completion channel for CQs that share one.  A goroutine that waits there for the events of
// one CQ alone is not woken when that CQ is destroyed.
func (d *Device) CreateCompChannel() (*CompChannel, error) {
	const op = "ibv_create_comp_channel"
	if !d.open() {
		return nil, closed(op, "device")
	}
	native, err := d.nativeCompChannel(op)
	if err != nil {
		return nil, err
	}
	c := d.provider.newCompChannel(native)
	c.device = d
	return c, nil
}

func (d *Device) nativeCompChannel(op string) (native *C.struct_ibv_comp_channel, err error) {
	var fd C.int
	return native, check(op, int(C.core_create_comp_channel(d.provider.c, d.c, &native, &fd)))
}

func (c *CompChannel) open() bool { return c != nil && c.c != nil }

// Destroy frees the channel (ibv_destroy_comp_channel(3)).  EBUSY while it has CQs.
func (c *CompChannel) Destroy() error {
	const op = "ibv_destroy_comp_channel"
	if !c.open() {
		return closed(op, "completion channel")
	}
	c.mu.Lock()
	if len(c.cqs) != 0 {
		defer c.mu.Unlock()
		return fail(op, syscall.EBUSY, "%d CQs raise their events here", len(c.cqs))
	}
	native := c.c
	c.c = nil
	c.mu.Unlock()
	c.waiter.close()
	return check(op, int(C.core_destroy_comp_channel(c.provider.c, native)))
}

// GetCQEvent waits for an event that RequestNotify of one of the CQs requested, acknowledges it and returns its CQ
// (ibv_get_cq_event(3)).  A ctx that has ended already takes what is there.  The error wraps ctx.Err() when ctx ends
// first.
func (c *CompChannel) GetCQEvent(ctx context.Context) (*CQ, error) {
	return c.get(ctx, nil)
}

// get is GetCQEvent for the events of one CQ, or with nil of any.
func (c *CompChannel) get(ctx context.Context, of *CQ) (*CQ, error) {
	const op = "ibv_get_cq_event"
	if !c.open() {
		return nil, closed(op, "completion channel")
	}
	if ctx.Err() != nil { // what is there is taken all the same
		if there, err := c.holds(of); !there || err != nil {
			return nil, errors.Join(err, cancelled(ctx, op, "a completion event"))
		}
	}
	cq, came, err := c.next(ctx, func(cq *CQ) bool { return of == nil || cq == of })
	switch {
	case came || err != nil:
		return cq, err
	case ctx.Err() == nil:
		return nil, closed(op, "CQ")
	}
	return nil, cancelled(ctx, op, "a completion event")
}

// Source is that there is an event of one of the CQs, for GetCQEvent to take.
func (c *CompChannel) Source() (Source, error) { return c.source(nil) }

func (c *CompChannel) source(of *CQ) (Source, error) {
	if !c.open() {
		return Source{}, closed("ibv_get_cq_event", "completion channel")
	}
	return Source{ready: func() (bool, error) { return c.holds(of) }, fd: c.fd(), listen: c.listen}, nil
}

// holds reports whether there is an event of one CQ, or with nil of any.
func (c *CompChannel) holds(of *CQ) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of == nil {
		return c.ready(c.any)
	}
	return c.ready(c.has(of))
}

func (p *Provider) newCompChannel(native *C.struct_ibv_comp_channel) *CompChannel {
	c := &CompChannel{c: native, provider: p, cqs: make(map[*C.struct_ibv_cq]*CQ)}
	c.clock, c.read, c.drop = p.clock, c.readEvent, func(*CQ) {}
	c.key = func(cq *CQ) *CQ { return cq }
	c.full = func(alike int, _ *CQ) bool { return alike >= maxEvents }
	c.descriptor = func() (int, string) { return c.fd(), "completion events" }
	return c
}

func (c *CompChannel) fd() int {
	if c.c == nil {
		return -int(syscall.EBADF)
	}
	return int(c.c.fd)
}

// readEvent is the channel's read.  It drops an event that a Poller, and not RequestNotify, had requested.
func (c *CompChannel) readEvent() (*CQ, bool, error) {
	if c.c == nil {
		return nil, false, closed("ibv_get_cq_event", "completion channel")
	}
	var which *C.struct_ibv_cq
	result := int(C.core_get_cq_event(c.provider.c, c.c, &which))
	if result == -int(syscall.EAGAIN) {
		return nil, false, errNothing
	}
	if err := check("ibv_get_cq_event", result); err != nil {
		return nil, false, err
	}
	cq := c.cqs[which]
	return cq, cq != nil && cq.asked.Swap(false), nil
}

// carry adds a CQ to those that send their events here.
func (c *CompChannel) carry(cq *CQ) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cqs[cq.c] = cq
}

// leave takes a CQ out, with its events.  A channel that was made for it has ended its Go side then.
func (c *CompChannel) leave(cq *CQ) (restore func()) {
	native := cq.c
	if c.device != nil {
		return c.leaveShared(cq)
	}
	c.waiter.close() // first: a goroutine that waits then unlocks mu
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cqs, native)
	channel := c.c
	c.c = nil
	c.discard(func(*CQ) bool { return true })
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.c, c.cqs[native] = channel, cq
	}
}

func (c *CompChannel) leaveShared(cq *CQ) (restore func()) {
	native := cq.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cqs[native] == cq { // and not another one, made since where this one was
		delete(c.cqs, native)
	}
	c.discard(func(each *CQ) bool { return each == cq })
	return func() { c.carry(cq) }
}
