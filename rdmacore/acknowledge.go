package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// heldEvents guards, for all ids of a provider, the account of events that are not acknowledged.
type heldEvents struct{ sync.Mutex }

// HoldEvents says whether the events read from now on are acknowledged at once, as they are unless this is
// called, or by Event.Ack (rdma_ack_cm_event(3)).  An event that is not acknowledged keeps its id, for a
// CONNECT_REQUEST the listener, from being destroyed or migrated.
func (c *EventChannel) HoldEvents(hold bool) error {
	if !c.open() {
		return closed("rdma_get_cm_event", "event channel")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = hold
	return nil
}

// Ack acknowledges an event (rdma_ack_cm_event(3)).  EINVAL for one that is acknowledged already: by Ack
// before, or when it was read because its channel does not hold events.
func (e *Event) Ack() error {
	const op = "rdma_ack_cm_event"
	if e == nil || e.owner == nil {
		return fail(op, syscall.EINVAL, "the event is acknowledged already")
	}
	held := &e.owner.channel.provider.held
	held.Lock()
	defer held.Unlock()
	native := e.held
	if native == nil {
		return fail(op, syscall.EINVAL, "the event is acknowledged already")
	}
	e.held = nil
	e.owner.unacknowledged[e.Type]--
	return check(op, int(C.core_ack_event(e.owner.native(), native)))
}

// Held tells whether the event is still to be acknowledged.
func (e *Event) Held() bool {
	if e == nil || e.owner == nil {
		return false
	}
	held := &e.owner.channel.provider.held
	held.Lock()
	defer held.Unlock()
	return e.held != nil
}

// hold puts an event on the account of its owner.
func (e *Event) hold(owner *ID, native *C.struct_rdma_cm_event) {
	if native == nil {
		return
	}
	held := &owner.channel.provider.held
	held.Lock()
	defer held.Unlock()
	e.owner, e.held = owner, native
	owner.unacknowledged[e.Type]++
}

// blocker says which events are not acknowledged, "" when all are.
func (id *ID) blocker() string {
	held := &id.channel.provider.held
	held.Lock()
	defer held.Unlock()
	text := ""
	for _, row := range eventTypeNames.rows {
		if count := id.unacknowledged[row.value]; count > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d unacked %s", count, row.name)
		}
	}
	if text == "" {
		return ""
	}
	return text + " on " + id.name()
}

// name is how an id is called in errors.
func (id *ID) name() string {
	local := id.LocalAddr()
	if id.listening {
		return fmt.Sprintf("listener %d", local.Port())
	}
	if peer := id.PeerAddr(); peer.IsValid() {
		return fmt.Sprintf("the id of %s to %s", local, peer)
	}
	if local.IsValid() {
		return "the id of " + local.String()
	}
	return "an unbound id"
}

// patience is how long what librdmacm would wait for without an end is waited for.
const patience = time.Second

// waitAcknowledged waits until all events of the id are acknowledged, which rdma_destroy_id(3) and
// rdma_migrate_id(3) do without an end: EBUSY after patience, with what is missing.
func (id *ID) waitAcknowledged(op string) error {
	if id.blocker() == "" {
		return nil
	}
	clock := id.channel.provider.clock
	ctx, cancel := clock.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		ended := clock.Sleep(ctx, time.Millisecond)
		blocker := id.blocker()
		switch {
		case blocker == "":
			return nil
		case ended != nil:
			return fail(op, syscall.EBUSY, "%s; librdmacm would wait until it is acknowledged", blocker)
		}
	}
}
