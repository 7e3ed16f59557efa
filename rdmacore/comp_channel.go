package rdmacore

// #include "core/core.h"
import "C"

import (
	"syscall"
)

// compChannel carries the completion events of CQs (ibv_create_comp_channel(3)).  Who wants those of one CQ and reads
// another's keeps it for whoever asks.
type compChannel struct {
	c        *C.struct_ibv_comp_channel // nil once destroyed
	provider *Provider

	// The mailbox's mu guards the rest, too.
	mailbox[*CQ]
	cqs map[*C.struct_ibv_cq]*CQ
}

// mostEvents is how many events of one CQ are kept: each has been asked for, and one is as good as many.
const mostEvents = 64

func (p *Provider) newCompChannel(native *C.struct_ibv_comp_channel) *compChannel {
	c := &compChannel{c: native, provider: p, cqs: make(map[*C.struct_ibv_cq]*CQ)}
	c.clock, c.read, c.drop = p.clock, c.readEvent, func(*CQ) {}
	c.full = func(kept []*CQ, cq *CQ) bool {
		alike := 0
		for _, other := range kept {
			if other == cq {
				alike++
			}
		}
		return alike >= mostEvents
	}
	c.descriptor = func() (int, string) { return c.fd(), "completion events" }
	return c
}

func (c *compChannel) fd() int {
	if c.c == nil {
		return -int(syscall.EBADF)
	}
	return int(c.c.fd)
}

// readEvent is the channel's read.  An event that a Poller had asked for, and not RequestNotify, is for nobody.
func (c *compChannel) readEvent() (*CQ, bool, error) {
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

// carry adds a CQ to those whose events come here.
func (c *compChannel) carry(cq *CQ) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cqs[cq.c] = cq
}

// leave takes out the CQ that the channel was made for, and ends its Go side.
func (c *compChannel) leave(cq *CQ) (restore func()) {
	native := cq.c
	c.waiter.close() // first: who waits lets go of mu
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cqs, native)
	channel := c.c
	c.c, c.queue = nil, nil
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.c, c.cqs[native] = channel, cq
	}
}
