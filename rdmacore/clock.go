package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Clock is the time that a provider's timers run on: the host's monotonic clock, or on soft a virtual one. On a
// virtual clock an RNR timer of 655.36 ms or a connection timeout of a minute is exact and takes no time.
//
// A virtual clock moves when all its actors wait: goroutines become actors by Enter, until Leave.
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

// Virtual reports whether the clock is a virtual one.
func (c *Clock) Virtual() bool { return c.virtual != nil }

// Now is the time since the provider was opened.
func (c *Clock) Now() time.Duration {
	if c.virtual != nil {
		return c.virtual.now()
	}
	return time.Since(c.began)
}

// CaptureTime is now, as packets of a Capture have it: in nanoseconds since 1970, where a virtual clock begins.
func (c *Clock) CaptureTime() uint64 {
	if c.virtual != nil {
		return uint64(c.virtual.now() + origin)
	}
	return uint64(time.Now().UnixNano())
}

// since is when something was, of which C has the time in nanoseconds since 1970; a virtual clock begins there.
func (c *Clock) since(ns uint64) time.Duration {
	if c.virtual != nil {
		return time.Duration(ns) - origin
	}
	return time.Unix(0, int64(ns)).Sub(c.began)
}

// Enter counts one more goroutine that acts on a virtual clock: time stops while any of them does not wait.  Each ends
// with Leave.  On the wall clock both do nothing.
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

// Launch runs f in a goroutine that acts on the clock. On a virtual clock the caller must act on the clock, too.
// Launch then returns when f first waits or has ended, so that several begin in the order of their launches. ended is
// closed when f acts no more.
func (c *Clock) Launch(f func()) (ended <-chan struct{}) {
	over := make(chan struct{})
	if c.virtual != nil {
		c.virtual.launch(f, over)
		return over
	}
	go func() {
		defer close(over)
		f()
	}()
	return over
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

// Await waits until signal is closed, or other, which may be nil, by another actor of this clock.  The error wraps
// ctx.Err() when ctx ends first.
func (c *Clock) Await(ctx context.Context, signal, other <-chan struct{}) error {
	came := false
	if c.virtual != nil {
		came = c.virtual.wait(ctx, func() bool {
			select {
			case <-signal:
				return true
			case <-other:
				return true
			default:
				return false
			}
		})
	} else {
		select {
		case <-signal:
			came = true
		case <-other:
			came = true
		case <-ctx.Done():
		}
	}
	if !came {
		return cancelled(ctx, "wait", "a signal")
	}
	return nil
}

// virtualClock moves the provider's time on when all its actors wait and none can continue.
//
// An actor that finds at once what it waits for continues.  Otherwise it becomes a sleeper.  When all actors wait, the
// clock checks the sleepers in the order in which they began to wait.  The first with a true condition continues,
// alone.  With a seed the check begins at a sleeper drawn from the seed, so that another seed is another interleaving.
// When no condition holds, the clock moves to the next timer or deadline, applies all that are due then, and checks the
// sleepers again.
//
// So time never passes while an actor can continue, and a run takes as long as its steps, not its timeouts.  A run is
// repeatable: only one actor runs at any time, and no scheduler decides which one.
type virtualClock struct {
	provider *Provider

	mu        sync.Mutex
	acting    int           // Enter less Leave
	sleepers  []*sleeper    // in the order in which they began to wait
	deadlines []*virtualEnd // in no order: a run has few at a time
	calmer    sync.Cond     // signalled when one less is awake
	draws     *rand.Rand    // draws the sleeper to check first; nil without a seed
	first     int           // index in sleepers to check first: drawn when the last one continued

	following following
	onWall    int // actors that run, and take wall-clock time (Clock.OnWall)
}

// sleeper is an actor that waits.
type sleeper struct {
	ctx   context.Context
	found func() bool // called with the clock's mu held, by anyone
	woken bool
	came  bool          // what it waits for; false when its ctx has ended
	wake  chan struct{} // closed when woken, if it is there
}

// virtualEnd is a context that ends at a time of the clock.
type virtualEnd struct {
	at     time.Duration
	cancel context.CancelCauseFunc
}

func newVirtualClock(p *Provider) *virtualClock {
	c := &virtualClock{provider: p}
	c.calmer.L = &c.mu
	return c
}

// origin is the time of the C core's virtual clock when it is made (soft_clock_virtual).
const origin = time.Second

func (c *virtualClock) now() time.Duration {
	return time.Duration(C.core_clock_now(c.provider.c)) - origin
}

func (c *virtualClock) enter(change int) {
	c.mu.Lock()
	c.acting += change
	c.resumeOne()
	c.calmer.Broadcast()
	c.mu.Unlock()
}

// end is the end of an actor.
func (c *virtualClock) end(ended chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(ended)
	c.acting--
	c.resumeOne()
	c.calmer.Broadcast()
}

// awake counts the actors that do not wait.  mu is held.
func (c *virtualClock) awake() int { return c.acting - len(c.sleepers) - c.onWall }

// launch runs f in a goroutine that is an actor, and returns when it first waits or has ended.  The caller is an actor,
// so no other one continues meanwhile.
func (c *virtualClock) launch(f func(), ended chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.awake()
	c.acting++
	go func() {
		defer c.end(ended)
		f()
	}()
	for c.awake() > before {
		c.calmer.Wait()
	}
}

// wait returns when found is true, or when ctx has ended.  Any waiting goroutine may call found, with mu held.
func (c *virtualClock) wait(ctx context.Context, found func() bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found() {
		return true
	}
	if ctx.Err() != nil {
		return false
	}
	s := &sleeper{ctx: ctx, found: found}
	c.sleepers = append(c.sleepers, s)
	if c.resumeOne(); s.woken {
		return s.came
	}
	c.calmer.Broadcast()
	s.wake = make(chan struct{})
	defer context.AfterFunc(ctx, func() { c.endWait(s) })()
	c.mu.Unlock()
	<-s.wake
	c.mu.Lock()
	return s.came
}

// turnTimeout is how long a sleeper with a cancelled context waits for its turn, in wall-clock time: another actor may
// compute without an end.  After a deadline of this clock it waits without a limit, or the run would not repeat.
const turnTimeout = 200 * time.Millisecond

// endWait lets s continue in its turn after its context has ended.  Of two contexts that end together, one sleeper
// continues after the other, as if their conditions were true.
func (c *virtualClock) endWait(s *sleeper) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resumeOne(); s.woken || context.Cause(s.ctx) == error(deadlineReached{}) {
		return
	}
	time.AfterFunc(turnTimeout, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if at := slices.Index(c.sleepers, s); at >= 0 {
			c.release(at, false)
		}
	})
}

// resumeOne lets one sleeper continue, if all actors wait.  mu is held.
func (c *virtualClock) resumeOne() {
	for len(c.sleepers) > 0 && len(c.sleepers) >= c.acting {
		if c.releaseFirst() || !c.advance() {
			return
		}
	}
}

// releaseFirst lets the first sleeper continue that has a true condition or an ended context.  mu is held.
func (c *virtualClock) releaseFirst() bool {
	for i := range c.sleepers {
		at := (c.first + i) % len(c.sleepers)
		s := c.sleepers[at]
		if came := s.found(); came || s.ctx.Err() != nil {
			c.release(at, came)
			c.draw()
			return true
		}
	}
	return false
}

// draw draws the sleeper at which the next check begins.
func (c *virtualClock) draw() {
	if c.draws != nil {
		c.first = c.draws.IntN(1 << 16)
	}
}

func (c *virtualClock) release(at int, came bool) {
	s := c.sleepers[at]
	c.sleepers = slices.Delete(c.sleepers, at, at+1)
	s.woken, s.came = true, came
	if s.wake != nil {
		close(s.wake)
	}
}

// advance moves the clock to the next timer or deadline.  It returns false when there is none, so that only the
// contexts themselves can end a wait.  mu is held: expiring timers of the core take locks of the core only.
//
// All timers and deadlines of that time are due before the sleepers are checked.  Otherwise sleepers with the same
// deadline would continue in the order of their deadlines, with any seed.
func (c *virtualClock) advance() bool {
	next := c.earliest()
	limit := C.uint64_t(math.MaxUint64)
	if next != nil {
		limit = C.uint64_t(next.at + origin)
	}
	if C.core_clock_advance(c.provider.c, limit) == 0 && next == nil {
		return false
	}
	c.reach(c.now())
	return true
}

// reach moves the clock to a time, running timers and ending contexts that are due until then.  mu is held.
func (c *virtualClock) reach(limit time.Duration) {
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
			return
		}
		c.remove(next)
		next.cancel(deadlineReached{})
	}
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

// deadlineReached is the cause of a context that ends at a time of the clock.
type deadlineReached struct{}

func (deadlineReached) Error() string        { return context.DeadlineExceeded.Error() }
func (deadlineReached) Is(target error) bool { return target == context.DeadlineExceeded }

// virtualContext is a context with a deadline in virtual time: its Err is DeadlineExceeded when the clock has reached
// it.
type virtualContext struct{ context.Context }

func (v virtualContext) Err() error {
	if v.Context.Err() == nil {
		return nil
	}
	if cause := context.Cause(v.Context); !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	return context.DeadlineExceeded
}

func (c *virtualClock) withTimeout(
	parent context.Context, timeout time.Duration,
) (context.Context, context.CancelFunc) {
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
