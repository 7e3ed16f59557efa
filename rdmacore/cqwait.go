package rdmacore

import (
	"context"
	"runtime"
	"syscall"
	"time"
)

// The back-off of CQ.Wait, in slices without a completion.  A poll takes 30 to 60 ns, so the first slice is
// a few microseconds, in which a peer that is running answers.  When it does not, it may wait for this
// very processor: after each slice other goroutines and threads get their turn, and slices grow as
// the hope for a quick answer fades.  After some ten milliseconds there are sleeps in between.
const (
	firstAttempts   = 64
	longestAttempts = 512
	spinSlices      = 512
	firstSleep      = 20 * time.Microsecond
	longestSleep    = time.Millisecond
)

// Wait polls until there is at least one completion and returns how many it took, at most len(wcs).  It
// busy-polls first, for latency, and turns to short sleeps when nothing comes.  The error wraps ctx.Err()
// when ctx ends first.
func (c *CQ) Wait(ctx context.Context, wcs []WC) (int, error) { return c.wait(ctx, wcs, nil) }

func (c *CQ) wait(ctx context.Context, wcs []WC, stamps []Timestamp) (int, error) {
	if len(wcs) == 0 {
		return 0, fail("ibv_poll_cq", syscall.EINVAL, "no room for completions")
	}
	if c.open() && c.provider.clock.Virtual() {
		return c.waitVirtually(ctx, wcs, stamps)
	}
	attempts, sleep := uint32(firstAttempts), firstSleep
	for slice := 0; ; slice++ {
		n, err := c.poll(wcs, stamps, attempts)
		if n != 0 || err != nil {
			return n, err
		}
		if ctx.Err() != nil {
			return 0, cancelled(ctx, "ibv_poll_cq", "a completion")
		}
		if slice < spinSlices {
			runtime.Gosched()
			yieldProcessor()
			attempts = min(2*attempts, longestAttempts)
			continue
		}
		time.Sleep(sleep)
		sleep = min(2*sleep, longestSleep)
	}
}

// waitVirtually is Wait on a virtual clock: nothing can come while everyone waits but by moving the clock.
func (c *CQ) waitVirtually(ctx context.Context, wcs []WC, stamps []Timestamp) (n int, err error) {
	found := c.provider.clock.virtual.wait(ctx, func() bool {
		n, err = c.poll(wcs, stamps, 1)
		return n != 0 || err != nil
	})
	if !found {
		return 0, cancelled(ctx, "ibv_poll_cq", "a completion")
	}
	return n, err
}

// yieldProcessor is sched_yield(2): it matters where there are more spinning threads than processors, and
// costs a fraction of a microsecond where there are not.
func yieldProcessor() { syscall.RawSyscall(syscall.SYS_SCHED_YIELD, 0, 0, 0) }
