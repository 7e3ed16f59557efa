package rdmacore

// #include "core.h"
import "C"

import (
	"context"
	"sync"
	"syscall"
)

// AsyncEventType is what happened to a device or one of its objects (enum ibv_event_type).
type AsyncEventType int32

// AsyncEvent is one asynchronous event of a device (ibv_get_async_event(3)).
type AsyncEvent struct {
	Type AsyncEventType
	Port int  // port events; else 0
	QP   *QP  // QP events, when the QP is one of this process's Go API; else nil
	CQ   *CQ  // CQ events, likewise
	SRQ  *SRQ // SRQ events, likewise
}

// GetAsyncEvent waits for the next asynchronous event of the device.  The error wraps ctx.Err() when ctx
// ends first.
func (d *Device) GetAsyncEvent(ctx context.Context) (AsyncEvent, error) {
	const op = "ibv_get_async_event"
	if !d.open() {
		return AsyncEvent{}, closed(op, "device")
	}
	waiter, err := d.async.get(d.provider.clock, func() (int, string) {
		return int(C.core_async_fd(d.c)), "asynchronous events of " + d.Name()
	})
	if err != nil {
		return AsyncEvent{}, err
	}
	var event AsyncEvent
	var failure error
	if !waiter.wait(ctx, func() bool {
		var again bool
		event, again, failure = d.takeAsyncEvent()
		return !again
	}) {
		return AsyncEvent{}, cancelled(ctx, op, "an asynchronous event of "+d.Name())
	}
	return event, failure
}

func (d *Device) takeAsyncEvent() (event AsyncEvent, again bool, err error) {
	var kind C.int
	var element C.uintptr_t // not a pointer: for port events it is a port number
	d.provider.objects.Lock()
	defer d.provider.objects.Unlock()
	result := int(C.core_get_async_event(d.provider.c, d.c, &kind, &element))
	if result == -int(syscall.EAGAIN) {
		return event, true, nil
	}
	if err := check("ibv_get_async_event", result); err != nil {
		return event, false, err
	}
	event.Type = AsyncEventType(kind)
	switch event.Type {
	case AsyncPortActive, AsyncPortErr, AsyncLIDChange, AsyncPkeyChange, AsyncSMChange,
		AsyncClientReregister, AsyncGIDChange, AsyncDeviceSpeed:
		event.Port = int(element)
	default:
		event.QP, _ = d.provider.objects.known[uintptr(element)].(*QP)
		event.CQ, _ = d.provider.objects.known[uintptr(element)].(*CQ)
		event.SRQ, _ = d.provider.objects.known[uintptr(element)].(*SRQ)
	}
	return event, false, nil
}

// lazyWaiter is an fdWaiter made at its first use: most descriptors are never waited on.
type lazyWaiter struct {
	mu     sync.Mutex
	waiter *fdWaiter
}

func (l *lazyWaiter) get(clock *Clock, descriptor func() (fd int, name string)) (*fdWaiter, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiter != nil {
		return l.waiter, nil
	}
	fd, name := descriptor()
	if fd < 0 {
		return nil, fail("fcntl", syscall.Errno(-fd), "%s have no descriptor", name)
	}
	waiter, err := newFDWaiter(clock, fd, name)
	if err != nil {
		return nil, err
	}
	l.waiter = waiter
	return waiter, nil
}

func (l *lazyWaiter) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiter != nil {
		l.waiter.close()
		l.waiter = nil
	}
}
