package rdmacore

// #include "core/core.h"
import "C"

import (
	"slices"
	"syscall"
)

// MigrateID moves the id to another event channel of its provider (rdma_migrate_id(3)), with the events that
// nobody has read; nil makes it synchronous.
//
// EINVAL for a channel of another provider, or nil for an id that is synchronous already; EBUSY while a call
// of a synchronous id is under way, or, after a second, events of the id are not acknowledged.
func (id *ID) MigrateID(channel *EventChannel) error {
	const op = "rdma_migrate_id"
	if !id.open() {
		return closed(op, "id")
	}
	if channel != nil {
		switch {
		case !channel.open():
			return closed(op, "event channel")
		case channel.provider != id.channel.provider:
			return foreign(op, "event channel", channel.provider, id.channel.provider)
		case channel.private && channel != id.channel:
			return fail(op, syscall.EINVAL, "the channel belongs to another, synchronous id")
		case channel == id.channel:
			return fail(op, syscall.EINVAL, "the id is on that channel already")
		}
	} else if id.synchronous {
		return fail(op, syscall.EINVAL, "the id is synchronous already")
	}
	if err := id.readyToGo(op); err != nil {
		return err
	}
	p := id.channel.provider
	p.migrating.Lock() // so that two locks of channels are never taken in two orders
	defer p.migrating.Unlock()
	return id.migrate(op, channel)
}

func (id *ID) migrate(op string, to *EventChannel) error {
	from := id.channel
	from.mu.Lock()
	defer from.mu.Unlock()
	if id.pending != "" {
		return fail(op, syscall.EBUSY, "%s of this id has not come to its end", id.pending)
	}
	var native *C.struct_rdma_event_channel
	if to != nil {
		to.mu.Lock()
		defer to.mu.Unlock()
		native = to.c
	}
	if err := id.call(op, "", func() C.int { return C.core_migrate_id(id.native(), id.c, native) }); err != nil {
		return err
	}
	if to == nil {
		to = from.provider.privateChannel(id)
	}
	delete(from.ids, id.c)
	to.ids[id.c] = id
	from.queue = slices.DeleteFunc(from.queue, func(d delivery) bool {
		if d.key == id && !to.hand(d) {
			to.queue = append(to.queue, d)
		}
		return d.key == id
	})
	id.channel, id.synchronous, id.completed = to, to.private, nil
	id.noteRequest()
	if from.private {
		from.retire()
	}
	return nil
}
