package rdmacore

// #include "core.h"
import "C"

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"
)

// virtualClock moves the provider's time on when everyone who acts waits for something that is not there.
//
// Each wait looks for what it waits for with mu held.  Who finds nothing and is the last to wait moves the
// clock to the next timer or deadline, and then all look again.  So time never passes while someone could
// still act, and a run takes as long as its steps, however long its timeouts are.
type virtualClock struct {
	provider *Provider

	mu        sync.Mutex
	changed   sync.Cond
	acting    int           // Enter less Leave
	waiting   int           // of those, who found nothing since the last change
	round     uint64        // counts the changes after which all look again
	deadlines []*virtualEnd // in no order: a run has few at a time

	following following
}

// virtualEnd is a context that ends at a time of the clock.
type virtualEnd struct {
	at     time.Duration
	cancel context.CancelCauseFunc
}

func newVirtualClock(p *Provider) *virtualClock {
	c := &virtualClock{provider: p}
	c.changed.L = &c.mu
	return c
}

// origin is where the C core's virtual clock stands when it is made (soft_clock_virtual).
const origin = time.Second

func (c *virtualClock) now() time.Duration {
	return time.Duration(C.core_clock_now(c.provider.c)) - origin
}

func (c *virtualClock) enter(change int) {
	c.mu.Lock()
	c.acting += change
	c.lookAgain()
	c.mu.Unlock()
}

// lookAgain wakes all who wait.  mu is held.
func (c *virtualClock) lookAgain() {
	c.waiting = 0
	c.round++
	c.changed.Broadcast()
}

// wait returns when found does, or when ctx has ended.  found is called with mu held.
func (c *virtualClock) wait(ctx context.Context, found func() bool) bool {
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		c.lookAgain()
		c.mu.Unlock()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lookAgain() // what the caller did before it waits may be another's cue, too
	for {
		if found() {
			c.lookAgain() // what was found may be another's cue
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		if c.waiting++; c.waiting >= c.acting {
			c.advance()
			c.lookAgain()
			continue
		}
		for round := c.round; round == c.round; {
			c.changed.Wait()
		}
	}
}

// advance moves the clock to whatever comes next.  mu is held: expiring timers of the core take locks of the
// core only.
func (c *virtualClock) advance() {
	next := c.earliest()
	limit := C.uint64_t(math.MaxUint64)
	if next != nil {
		limit = C.uint64_t(next.at + origin)
	}
	if C.core_clock_advance(c.provider.c, limit) == 1 {
		return
	}
	if next == nil {
		// Nothing is under way and nobody has a deadline: wait for the contexts themselves.
		c.changed.Wait()
		return
	}
	c.remove(next)
	next.cancel(context.DeadlineExceeded)
}

func (c *virtualClock) earliest() *virtualEnd {
	if len(c.deadlines) == 0 {
		return nil
	}
	return slices.MinFunc(c.deadlines, func(a, b *virtualEnd) int { return int(a.at - b.at) })
}

func (c *virtualClock) remove(end *virtualEnd) {
	if i := slices.Index(c.deadlines, end); i >= 0 {
		c.deadlines = slices.Delete(c.deadlines, i, i+1)
	}
}

// virtualContext is a context whose deadline is not on the wall: its Err says DeadlineExceeded when the
// clock has reached it.
type virtualContext struct{ context.Context }

func (v virtualContext) Err() error {
	if v.Context.Err() == nil {
		return nil
	}
	return context.Cause(v.Context)
}

func (c *virtualClock) withTimeout(parent context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	end := &virtualEnd{at: c.now() + max(timeout, 0), cancel: cancel}
	c.mu.Lock()
	c.deadlines = append(c.deadlines, end)
	c.mu.Unlock()
	return virtualContext{ctx}, func() {
		c.mu.Lock()
		c.remove(end)
		c.mu.Unlock()
		cancel(context.Canceled)
	}
}
