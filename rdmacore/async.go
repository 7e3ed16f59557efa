package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"syscall"
)

// AsyncEventType is what happened to a device or one of its objects (enum ibv_event_type).
type AsyncEventType int32

// AsyncEvent is one asynchronous event of a device (ibv_get_async_event(3)): of one of its objects, of a port, or of
// the device itself.
type AsyncEvent struct {
	Type AsyncEventType
	Port int  // port events; else 0
	QP   *QP  // QP events; else nil
	CQ   *CQ  // CQ events; else nil
	SRQ  *SRQ // SRQ events; else nil
	ID   *ID  // the id of the QP, CQ or SRQ; nil for one that was made without an id
}

// OfObject reports whether the event is of a QP, CQ or SRQ, rather than of a port or the device.
func (e AsyncEvent) OfObject() bool { return e.QP != nil || e.CQ != nil || e.SRQ != nil }

// of reports whether the event is of that QP, CQ or SRQ.
func (e AsyncEvent) of(object any) bool {
	return any(e.QP) == object || any(e.CQ) == object || any(e.SRQ) == object
}

// maxPending bounds what PendingAsyncEvents reads: the call must return even if the device never stops.
const maxPending = 1000

func (p *Provider) newDevice(native *C.struct_ibv_context) *Device {
	d := &Device{c: native, provider: p}
	d.async.clock, d.async.read = p.clock, d.readAsyncEvent
	d.async.key = func(e AsyncEvent) AsyncEvent { return e }
	d.async.full = func(alike int, _ AsyncEvent) bool { return alike >= maxAlike }
	d.async.drop = func(AsyncEvent) {} // acknowledged already
	d.async.descriptor = func() (int, string) {
		return int(C.core_async_fd(d.c)), "asynchronous events of " + d.Name()
	}
	return d
}

// maxAlike is how many unread events of one kind and object are kept.  A device reports most things once for an
// object.  But a program can make a send queue drain, or a shared queue fall below its limit, as often as it likes.
// The kernel drops an event when it has no memory for it (ib_uverbs_async_handler).  Here an event is dropped when
// sixty-four equal ones are kept.
const maxAlike = 64

// WaitAsyncEvent waits for the next asynchronous event of the device or of any of its objects that wants accepts, and
// acknowledges it (ibv_get_async_event(3), ibv_ack_async_event(3)).  Other events are kept for other calls, as long as
// their object lives.  Any number of goroutines may wait at once; an event is given to one of them.  A ctx that has
// ended already takes what is there.  The error wraps ctx.Err() when ctx ends first.
//
// Any of these goroutines may call wants, during the call and not after it, with the device's events locked.  So wants
// must not wait, and must neither make nor destroy objects.
func (d *Device) WaitAsyncEvent(ctx context.Context, wants func(AsyncEvent) bool) (AsyncEvent, error) {
	const op = "ibv_get_async_event"
	if !d.open() {
		return AsyncEvent{}, closed(op, "device")
	}
	if err := d.prepareAsync(); err != nil {
		return AsyncEvent{}, err
	}
	if ctx.Err() != nil {
		if _, err := d.PendingAsyncEvents(func(AsyncEvent) bool { return false }); err != nil {
			return AsyncEvent{}, err
		}
	}
	event, came, err := d.async.next(ctx, wants)
	switch {
	case came || err != nil:
		return event, err
	case ctx.Err() == nil:
		return event, closed(op, "device")
	}
	return event, cancelled(ctx, op, "an asynchronous event of "+d.Name())
}

// PendingAsyncEvents takes the events that are there already and that wants accepts, without waiting.
func (d *Device) PendingAsyncEvents(wants func(AsyncEvent) bool) ([]AsyncEvent, error) {
	if !d.open() {
		return nil, closed("ibv_get_async_event", "device")
	}
	if err := d.prepareAsync(); err != nil {
		return nil, err
	}
	d.async.mu.Lock()
	defer d.async.mu.Unlock()
	left := maxPending
	return d.async.pending(wants, func() bool {
		left--
		return left < 0
	})
}

// prepareAsync makes the descriptor one that reading does not wait for.
func (d *Device) prepareAsync() error {
	_, err := d.async.watch()
	return err
}

// readAsyncEvent is the device's read.  It drops an event of an object that the Go API did not make, or has destroyed.
func (d *Device) readAsyncEvent() (event AsyncEvent, ok bool, err error) {
	var kind C.int
	var element C.uintptr_t // not a pointer: for port events it is a port number
	objects := &d.provider.objects
	objects.Lock()
	defer objects.Unlock()
	result := int(C.core_get_async_event(d.provider.c, d.c, &kind, &element))
	if result == -int(syscall.EAGAIN) {
		return event, false, errNothing
	}
	if err := check("ibv_get_async_event", result); err != nil {
		return event, false, err
	}
	event.Type = AsyncEventType(kind)
	switch event.Type {
	case AsyncCQErr, AsyncQPFatal, AsyncQPReqErr, AsyncQPAccessErr, AsyncCommEst, AsyncSQDrained, AsyncPathMig,
		AsyncPathMigErr, AsyncQPLastWQEReached, AsyncSRQErr, AsyncSRQLimitReached, AsyncWQFatal:
		ok = event.find(objects.known[uintptr(element)])
		return event, ok, nil
	case AsyncDeviceFatal:
	default:
		event.Port = int(element)
	}
	return event, true, nil
}

// find fills in the object that an event is of; false when there is none.
func (e *AsyncEvent) find(object any) bool {
	switch object := object.(type) {
	case *QP:
		e.QP, e.ID = object, object.id
	case *CQ:
		e.CQ, e.ID = object, object.id
	case *SRQ:
		e.SRQ, e.ID = object, object.id
	}
	return object != nil
}
