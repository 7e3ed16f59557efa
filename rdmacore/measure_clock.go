package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"sync"
	"time"
)

// wallStep is how often a virtual clock that follows the wall is moved.
const wallStep = time.Millisecond

// OnWall runs f, in which the caller, who acts, takes time that only the wall knows: native threads work for it.
// On a virtual clock, the clock runs with the wall meanwhile, and what others wait for comes as it does there.
func (c *Clock) OnWall(f func()) {
	if c.virtual == nil {
		f()
		return
	}
	defer c.virtual.followWall()()
	c.virtual.goOnWall(1)
	defer c.virtual.goOnWall(-1)
	f()
}

func (c *virtualClock) goOnWall(change int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onWall += change
	c.calmer.Broadcast()
}

// followWall lets the virtual clocks of the ends run with the wall, until the function it returns is called.
// Native threads take time that only the wall knows, and a timer of the provider (RNR, CM retries) is
// theirs to wait for.
func (m *Measurement) followWall() (stop func()) {
	var leaves []func()
	for _, clock := range m.clocks {
		if clock.virtual != nil {
			leaves = append(leaves, clock.virtual.followWall())
		}
	}
	return func() {
		for _, leave := range leaves {
			leave()
		}
	}
}

// following is a virtual clock that runs with the wall, once however many measurements want it to.
type following struct {
	mu         sync.Mutex
	followers  int
	quit, done chan struct{}
}

func (c *virtualClock) followWall() (leave func()) {
	f := &c.following
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.followers++; f.followers == 1 {
		f.quit, f.done = make(chan struct{}), make(chan struct{})
		go c.runWithWall(f.quit, f.done)
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.followers--; f.followers == 0 {
			close(f.quit)
			<-f.done
		}
	}
}

func (c *virtualClock) runWithWall(quit, done chan struct{}) {
	defer close(done)
	ticker := time.NewTicker(wallStep)
	defer ticker.Stop()
	for last := time.Now(); ; {
		select {
		case <-quit:
			return
		case now := <-ticker.C:
			c.advanceBy(now.Sub(last))
			last = now
		}
	}
}

// advanceBy moves the clock on, running timers and ending contexts that are due on the way.
func (c *virtualClock) advanceBy(step time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	limit := c.now() + step
	for {
		next := c.earliest()
		until := limit
		if next != nil {
			until = min(until, next.at)
		}
		if C.core_clock_advance(c.provider.c, C.uint64_t(until+origin)) == 1 {
			continue // a timer ran; there may be more
		}
		if next == nil || next.at > limit {
			break
		}
		c.remove(next)
		next.cancel(context.DeadlineExceeded)
	}
	for c.releaseFirst() { // the measurement acts on the wall, and so do they meanwhile
	}
}
