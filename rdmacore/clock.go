package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"time"
)

// Clock is the time that a provider's timers run on: the machine's monotonic clock, or on soft a virtual
// one, on which an RNR timer of 655.36 ms or a connection timeout of a minute is exact and takes no time.
//
// A virtual clock moves when all who act on it wait: Enter and Leave say who acts.
type Clock struct {
	began   time.Time     // wall
	virtual *virtualClock // nil on the wall
}

func newClock(p *Provider, virtual bool) *Clock {
	if !virtual {
		return &Clock{began: time.Now()}
	}
	return &Clock{virtual: newVirtualClock(p)}
}

// Clock returns the provider's clock.
func (p *Provider) Clock() *Clock { return p.clock }

// Virtual tells whether the clock is a virtual one.
func (c *Clock) Virtual() bool { return c.virtual != nil }

// Now is the time since the provider was opened.
func (c *Clock) Now() time.Duration {
	if c.virtual != nil {
		return c.virtual.now()
	}
	return time.Since(c.began)
}

// Enter counts one more goroutine that acts on a virtual clock: time stands still while any of them does
// not wait.  Each ends with Leave.  On the wall clock both do nothing.
func (c *Clock) Enter() {
	if c.virtual != nil {
		c.virtual.enter(1)
	}
}

// Leave takes back one Enter.
func (c *Clock) Leave() {
	if c.virtual != nil {
		c.virtual.enter(-1)
	}
}

// Outside runs f, which waits for something other than the provider (a process, another goroutine that
// acts), with the caller counted out meanwhile.
func (c *Clock) Outside(f func()) {
	c.Leave()
	defer c.Enter()
	f()
}

// Launch runs f in a goroutine that acts on the clock.  On a virtual clock, on which the caller must act, too, it
// returns when f first waits or has ended, so that several begin in the order of their launches.
func (c *Clock) Launch(f func()) {
	if c.virtual != nil {
		c.virtual.launch(f)
		return
	}
	go f()
}

// WithTimeout is context.WithTimeout on this clock.
func (c *Clock) WithTimeout(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if c.virtual == nil {
		return context.WithTimeout(parent, timeout)
	}
	return c.virtual.withTimeout(parent, timeout)
}

// Sleep waits until d has passed.  The error wraps ctx.Err() when ctx ends first.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	ended, cancel := c.WithTimeout(context.Background(), d)
	defer cancel()
	if c.virtual != nil {
		c.virtual.wait(ctx, func() bool { return ended.Err() != nil })
	} else {
		select {
		case <-ended.Done():
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return cancelled(ctx, "sleep", "the end of a pause")
	}
	return nil
}

// Await waits until signal is closed, which another who acts on this clock will do.  The error wraps ctx.Err()
// when ctx ends first.
func (c *Clock) Await(ctx context.Context, signal <-chan struct{}) error {
	came := false
	if c.virtual != nil {
		came = c.virtual.wait(ctx, func() bool {
			select {
			case <-signal:
				return true
			default:
				return false
			}
		})
	} else {
		select {
		case <-signal:
			came = true
		case <-ctx.Done():
		}
	}
	if !came {
		return cancelled(ctx, "wait", "a signal")
	}
	return nil
}
