package rdmacore

// #include "core.h"
import "C"

import (
	"context"
	"time"
)

// wallStep is how often a virtual clock that follows the wall is moved.
const wallStep = time.Millisecond

// followWall lets the virtual clocks of the ends run with the wall, until the function it returns is called.
// Native threads take time that only the wall knows, and a timer of the provider (RNR, CM retries) is
// theirs to wait for.
func (m *Measurement) followWall() (stop func()) {
	var clocks []*virtualClock
	for _, clock := range m.clocks {
		if clock.virtual != nil {
			clocks = append(clocks, clock.virtual)
		}
	}
	if clocks == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(wallStep)
		defer ticker.Stop()
		for last := time.Now(); ; {
			select {
			case <-quit:
				return
			case now := <-ticker.C:
				for _, clock := range clocks {
					clock.advanceBy(now.Sub(last))
				}
				last = now
			}
		}
	}()
	return func() {
		close(quit)
		<-done
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
	c.lookAgain()
}
