package rdmacore

// #include "core/core.h"
import "C"

import (
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// Source is one of the things that a Poller waits for.  It is level-triggered: ready until a call takes what came.
type Source struct {
	ready func() (bool, error) // takes nothing
	// fd becomes readable with it; -1 where listen or ready is used instead.
	fd int
	// arm makes fd readable when new data arrives; nil if the kernel does this.
	arm func() error
	// listen has kick called when something comes on another way than by fd; nil where there is none.
	listen func(who *Poller, kick func()) (stop func())
	// slow: fd may become readable long after the thing has come.
	slow bool
	// device is the device of asynchronous events; nil for other sources.
	device *Device
}

// Device is the device of the source's asynchronous events; nil for other sources.
func (s *Source) Device() *Device { return s.device }

// NewSource is a Source without a descriptor: code that makes it ready calls the kick given to listen, until stop.
func NewSource(ready func() bool, listen func(kick func()) (stop func())) Source {
	s := Source{ready: func() (bool, error) { return ready(), nil }, fd: -1}
	if listen != nil {
		s.listen = func(_ *Poller, kick func()) func() { return listen(kick) }
	}
	return s
}

// Source is that there is an event of the id, or with nil of any, for Poll to take.
func (c *EventChannel) Source(id *ID) (Source, error) {
	if id != nil {
		if err := c.reads(id); err != nil {
			return Source{}, err
		}
	} else if !c.open() {
		return Source{}, closed("rdma_get_cm_event", "event channel")
	}
	return Source{ready: func() (bool, error) { return c.holds(id) }, fd: int(c.c.fd), listen: c.listen}, nil
}

// holds reports whether Poll would take an event.
func (c *EventChannel) holds(id *ID) (bool, error) {
	if id != nil && !id.open() || !c.open() {
		return false, closed("rdma_get_cm_event", "id")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.any
	if id != nil {
		found = c.has(id)
	}
	switch {
	case !c.private:
		return c.ready(found)
	case found():
		return true, nil
	}
	// librdmacm reads the channel of a synchronous id, in the calls that take what is there.
	return pollIn(int(c.c.fd))
}

func pollIn(fd int) (bool, error) {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	if err != nil && err != syscall.EINTR {
		return false, &Error{Op: "poll", Errno: err.(syscall.Errno)}
	}
	return n > 0, nil
}

// AsyncSource is ready when the device has an asynchronous event that wants accepts, which is called as by
// WaitAsyncEvent.
func (d *Device) AsyncSource(wants func(AsyncEvent) bool) (Source, error) {
	if !d.open() {
		return Source{}, closed("ibv_get_async_event", "device")
	}
	if err := d.prepareAsync(); err != nil {
		return Source{}, err
	}
	return Source{
		ready: func() (bool, error) {
			d.async.mu.Lock()
			defer d.async.mu.Unlock()
			return d.async.ready(d.async.matching(wants))
		},
		fd: int(C.core_async_fd(d.c)), listen: d.async.listen, device: d,
	}, nil
}

// EventSource is that the event has come that RequestNotify asked for.
func (c *CQ) EventSource() (Source, error) {
	if !c.open() {
		return Source{}, closed("ibv_get_cq_event", "CQ")
	}
	return c.channel.source(c)
}

// Source is that there is a completion to poll.
func (c *CQ) Source() (Source, error) {
	if !c.open() {
		return Source{}, closed("ibv_poll_cq", "CQ")
	}
	channel := c.channel
	return Source{
		ready: func() (bool, error) {
			// An event that the Poller has asked for is read with the others.
			if _, err := channel.holds(c); err != nil {
				return false, err
			}
			return c.see()
		},
		fd: channel.fd(), slow: c.merged.Load(),
		arm: func() error { return check("ibv_req_notify_cq", int(C.core_req_notify_cq(c.c, 0))) },
	}, nil
}

// sightings are completions that were polled to see whether there are any: a CQ has no call that looks without taking.
type sightings struct {
	looking sync.Mutex
	first   atomic.Pointer[sighting]
}

type sighting struct {
	wc    [1]WC
	stamp [1]Timestamp
}

// see reports whether there is a completion, which the next poll takes.
func (c *CQ) see() (bool, error) {
	c.seen.looking.Lock()
	defer c.seen.looking.Unlock()
	if !c.open() {
		return false, closed("ibv_poll_cq", "CQ")
	}
	if c.seen.first.Load() != nil {
		return true, nil
	}
	s := new(sighting)
	n, err := c.pollNative(s.wc[:], s.stamp[:], 1)
	if n == 0 || err != nil {
		return false, err
	}
	c.seen.first.Store(s)
	return true, nil
}

// pollSeen is poll when a completion was seen before.
func (c *CQ) pollSeen(wcs []WC, stamps []Timestamp) (int, error) {
	s := c.seen.first.Swap(nil)
	if s == nil { // another has polled meanwhile
		return c.pollNative(wcs, stamps, 1)
	}
	wcs[0] = s.wc[0]
	if len(stamps) > 0 {
		stamps[0], stamps = s.stamp[0], stamps[1:]
	}
	if len(wcs) == 1 {
		return 1, nil
	}
	n, err := c.pollNative(wcs[1:], stamps, 1)
	if err != nil { // the next poll reports it again
		n = 0
	}
	return 1 + n, nil
}

// forgetSeen lets go of a completion of a QP that is gone, as the CQ itself does.
func (c *CQ) forgetSeen(qpn uint32) {
	if s := c.seen.first.Load(); s != nil && s.wc[0].QPNum == qpn {
		c.seen.first.CompareAndSwap(s, nil)
	}
}
