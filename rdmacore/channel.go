package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"errors"
	"golang.org/x/sys/unix"
	"os"
	"syscall"
	"time"
)

// EventChannel delivers the connection manager events of its ids.  Any number of goroutines may wait at once, each
// for the events of one id or for all.
type EventChannel struct {
	provider *Provider
	c        *C.struct_rdma_event_channel
	private  bool // of a synchronous id, which it comes and goes with

	// The mailbox's mu guards the rest, too.  It is also held while an id is made or destroyed: an event can so
	// never meet an id that took a dead one's address.
	mailbox[*ID, delivery]
	ids     map[*C.struct_rdma_cm_id]*ID
	holding bool // see HoldEvents
}

// CreateEventChannel opens a channel (rdma_create_event_channel(3)).  ENODEV or ENOENT, with what to do,
// where there is no RDMA device.
func (p *Provider) CreateEventChannel() (*EventChannel, error) {
	const op = "rdma_create_event_channel"
	if p == nil || p.c == nil {
		return nil, closed(op, "provider")
	}
	var c *C.struct_rdma_event_channel
	var fd C.int // the same as c.fd
	if result := C.core_create_event_channel(p.c, &c, &fd); result < 0 {
		errno := syscall.Errno(-result)
		return nil, &Error{Op: op, Errno: errno, Why: deviceReason(op, errno)}
	}
	channel := p.newEventChannel(c)
	if _, err := channel.watch(); err != nil {
		C.core_destroy_event_channel(p.c, c)
		return nil, err
	}
	return channel, nil
}

// Provider returns the provider that the channel was made by.
func (c *EventChannel) Provider() *Provider {
	if c == nil {
		return nil
	}
	return c.provider
}

func (c *EventChannel) open() bool { return c != nil && c.c != nil }

// Close closes the channel (rdma_destroy_event_channel(3)).  EBUSY while it has ids.
func (c *EventChannel) Close() error {
	const op = "rdma_destroy_event_channel"
	if !c.open() {
		return closed(op, "event channel")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.private {
		return fail(op, syscall.EINVAL, "the channel belongs to a synchronous id and goes with it")
	}
	if len(c.ids) != 0 {
		return fail(op, syscall.EBUSY, "%d ids of the channel live", len(c.ids))
	}
	if err := check(op, int(C.core_destroy_event_channel(c.provider.c, c.c))); err != nil {
		return err
	}
	c.waiter.close()
	c.c = nil
	return nil
}

// GetEvent waits for the next event of the channel, of any id.  The error wraps ctx.Err() when ctx
// ends first.
func (c *EventChannel) GetEvent(ctx context.Context) (*Event, error) {
	if !c.open() {
		return nil, closed("rdma_get_cm_event", "event channel")
	}
	return c.nextEvent(ctx, nil)
}

// Wait waits for the next event of one id, and keeps events of other ids for other calls.  The events of a
// listener are its CONNECT_REQUESTs; later events of a child are the child's.  The error wraps ctx.Err()
// when ctx ends first.
func (c *EventChannel) Wait(ctx context.Context, id *ID) (*Event, error) {
	if err := c.reads(id); err != nil {
		return nil, err
	}
	return c.nextEvent(ctx, id)
}

// reads reports whether events of the id can be read from the channel.
func (c *EventChannel) reads(id *ID) error {
	const op = "rdma_get_cm_event"
	if !c.open() {
		return closed(op, "event channel")
	}
	if !id.open() {
		return closed(op, "id")
	}
	if id.channel != c {
		return fail(op, syscall.EINVAL, "the id belongs to another event channel")
	}
	return nil
}

// Poll takes the first event of id, or with nil of any, that is there already; nil when there is none.  Events of
// others are kept, as by Wait.
func (c *EventChannel) Poll(id *ID) (*Event, error) {
	wants := func(delivery) bool { return true }
	if id != nil {
		if err := c.reads(id); err != nil {
			return nil, err
		}
		wants = id.awaits
	} else if !c.open() {
		return nil, closed("rdma_get_cm_event", "event channel")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	d, came, err := c.poll(wants)
	switch {
	case came:
		return d.event, d.err
	case err == errNothing:
		return nil, nil
	}
	return nil, err
}

// Pending takes everything that is there already, without waiting.
func (c *EventChannel) Pending() ([]*Event, error) {
	const op = "rdma_get_cm_event"
	if !c.open() {
		return nil, closed(op, "event channel")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	deliveries, err := c.pending(func(delivery) bool { return true }, func() bool { return false })
	var events []*Event
	for _, d := range deliveries {
		if d.event != nil {
			events = append(events, d.event)
		} else if err == nil {
			err = d.err
		}
	}
	return events, err
}

// fdWaiter waits in the Go runtime's poller for a descriptor that belongs to a C object.  The poller
// gets a duplicate, so that closing the one never touches the other.
type fdWaiter struct {
	clock *Clock
	file  *os.File
	raw   syscall.RawConn
	turn  chan struct{} // holds one token: a file has one read deadline, so one wait at a time
}

// newFDWaiter watches fd, which is non-blocking already.
func newFDWaiter(clock *Clock, fd int, name string) (*fdWaiter, error) {
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, &Error{Op: "fcntl", Errno: err.(syscall.Errno), Why: "duplicating the descriptor of " + name}
	}
	return ownFDWaiter(clock, dup, name)
}

// ownFDWaiter is newFDWaiter of a descriptor that it closes.
func ownFDWaiter(clock *Clock, fd int, name string) (*fdWaiter, error) {
	file := os.NewFile(uintptr(fd), name)
	// Refused when the poller does not take the descriptor; a wait could then not be cancelled.
	if err := file.SetReadDeadline(time.Time{}); err != nil {
		file.Close()
		return nil, &Error{Op: "epoll_ctl", Errno: syscall.EPERM, Why: name + " cannot be polled"}
	}
	raw, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, &Error{Op: "epoll_ctl", Errno: syscall.EBADF, Why: name + ": " + err.Error()}
	}
	w := &fdWaiter{clock: clock, file: file, raw: raw, turn: make(chan struct{}, 1)}
	w.turn <- struct{}{}
	return w, nil
}

// wait calls try at once and then each time the descriptor becomes readable, until try returns true.
// false means that ctx ended first; what is there already is taken also when it had ended before.
func (w *fdWaiter) wait(ctx context.Context, try func() bool) bool {
	if w.clock.Virtual() {
		return w.clock.virtual.wait(ctx, try)
	}
	if ctx.Err() != nil {
		return try()
	}
	select {
	case <-w.turn:
	case <-ctx.Done():
		return false
	}
	defer func() { w.turn <- struct{}{} }()

	fired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		w.kick()
		close(fired)
	})
	defer func() {
		if !stop() {
			<-fired // else its deadline could hit the next wait
			w.file.SetReadDeadline(time.Time{})
		}
	}()
	for {
		done := false
		err := w.raw.Read(func(uintptr) bool {
			done = try()
			return done
		})
		if done || !errors.Is(err, os.ErrDeadlineExceeded) {
			return done
		}
		// The deadline is taken back before ctx and try are looked at again: a kick after that is not lost.
		w.file.SetReadDeadline(time.Time{})
		if ctx.Err() != nil {
			return false
		}
	}
}

// kick makes the goroutine that waits, or else the next one, try again, as if the descriptor had become readable.
func (w *fdWaiter) kick() { w.file.SetReadDeadline(time.Unix(1, 0)) }

func (w *fdWaiter) close() { w.file.Close() }
