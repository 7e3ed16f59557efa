package rdmacore

import (
	"context"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Poller waits for any of several Sources (poll(2)).  One goroutine at a time uses it.
type Poller struct {
	clock  *Clock
	epoll  int       // -1 on a virtual clock
	waiter *fdWaiter // of epoll
}

// Readiness is what a Poller found of a Source.
type Readiness uint8

// What it may be.
const (
	NotReady Readiness = iota
	Ready
	Broken // it can never be ready: the object is gone, or reading it fails
)

// NewPoller makes a Poller for what this provider has; it takes a descriptor, except on a virtual clock.
func (p *Provider) NewPoller() (*Poller, error) {
	if p == nil || p.c == nil {
		return nil, closed("epoll_create1", "provider")
	}
	poller := &Poller{clock: p.clock, epoll: -1}
	if p.clock.Virtual() {
		return poller, nil
	}
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, &Error{
			Op: "epoll_create1", Errno: err.(syscall.Errno), Why: "a descriptor to wait for several things",
		}
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, &Error{Op: "fcntl", Errno: err.(syscall.Errno), Why: "a descriptor to wait for several things"}
	}
	if poller.waiter, err = ownFDWaiter(p.clock, fd, "one of several things"); err != nil {
		return nil, err
	}
	poller.epoll = fd
	return poller, nil
}

// Close ends a Poller on which no goroutine waits.
func (p *Poller) Close() {
	if p != nil && p.waiter != nil {
		p.waiter.close()
	}
}

// Look sets the readiness of each source, and counts those that are ready or broken. Sources that it has not checked
// when ctx ends are NotReady. One check may take as long as to read all that has come on its channel.
func (*Poller) Look(ctx context.Context, sources []Source, found []Readiness) (count int) {
	for at := range sources {
		if ctx.Err() != nil {
			clear(found[at:])
			return count
		}
		ready, err := sources[at].ready()
		switch {
		case ready:
			found[at] = Ready
		case err != nil:
			found[at] = Broken
		default:
			found[at] = NotReady
			continue
		}
		count++
	}
	return count
}

// mergedLook is the interval of checks of a Source with a delayed descriptor.
const mergedLook = time.Millisecond

// Wait is Look that waits until one is ready, or until ctx ends, which the error then wraps.  The caller must not free
// the objects of the sources meanwhile.
func (p *Poller) Wait(ctx context.Context, sources []Source, found []Readiness) (count int, err error) {
	look := func() bool {
		count = p.Look(ctx, sources, found)
		return count > 0
	}
	if p.clock.Virtual() {
		p.clock.virtual.wait(ctx, look)
	} else if !look() {
		stop, failure := p.attend(sources)
		defer stop()
		if failure != nil {
			return 0, failure
		}
		p.waiter.wait(ctx, func() bool {
			if look() {
				return true
			}
			// An event from before a source was armed may never make its descriptor readable.
			armed := false
			for at := range sources {
				if arm := sources[at].arm; arm != nil && err == nil {
					err, armed = arm(), true
				}
			}
			return err != nil || armed && look()
		})
	}
	if err != nil || count > 0 {
		return count, err
	}
	return 0, cancelled(ctx, "poll", "one of several things")
}

// attend makes all sources kick the Poller until stop.
func (p *Poller) attend(sources []Source) (stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, each := range stops {
			each()
		}
	}
	slow := false
	for at := range sources {
		s := &sources[at]
		slow = slow || s.slow
		if s.listen != nil {
			stops = append(stops, s.listen(p, p.waiter.kick))
		}
		if s.fd < 0 {
			continue
		}
		err := unix.EpollCtl(p.epoll, unix.EPOLL_CTL_ADD, s.fd, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.fd)})
		switch err {
		case nil:
			fd := s.fd
			stops = append(stops, func() { unix.EpollCtl(p.epoll, unix.EPOLL_CTL_DEL, fd, nil) })
		case syscall.EEXIST: // two sources of one channel
		default:
			return stop, &Error{Op: "epoll_ctl", Errno: err.(syscall.Errno), Why: "waiting for several things"}
		}
	}
	if slow {
		ticker := time.NewTicker(mergedLook)
		ended := make(chan struct{})
		go func() {
			for {
				select {
				case <-ticker.C:
					p.waiter.kick()
				case <-ended:
					return
				}
			}
		}()
		stops = append(stops, func() { ticker.Stop(); close(ended) })
	}
	return stop, nil
}
