package rdmacore

import (
	"context"
	"runtime"
	"syscall"
	"time"
)

// The back-off of CQ.Wait, in slices without a completion.  A slice of 512 polls takes 10 to 50 us, so
// the thread spins for about a millisecond, the time in which a peer that is running answers, then
// yields to other goroutines between slices, and after some ten milliseconds sleeps in between.
const (
	sliceAttempts = 512
	spinSlices    = 32
	yieldSlices   = 256
	firstSleep    = 20 * time.Microsecond
	longestSleep  = time.Millisecond
)

// Wait polls until there is at least one completion and returns how many it took, at most len(wcs).  It
// busy-polls first, for latency, and turns to short sleeps when nothing comes.  The error wraps ctx.Err()
// when ctx ends first.
func (c *CQ) Wait(ctx context.Context, wcs []WC) (int, error) {
	if len(wcs) == 0 {
		return 0, fail("ibv_poll_cq", syscall.EINVAL, "no room for completions")
	}
	sleep := firstSleep
	for slice := 0; ; slice++ {
		n, err := c.PollN(wcs, sliceAttempts)
		if n != 0 || err != nil {
			return n, err
		}
		if ctx.Err() != nil {
			return 0, cancelled(ctx, "ibv_poll_cq", "a completion")
		}
		switch {
		case slice < spinSlices:
		case slice < yieldSlices:
			runtime.Gosched()
		default:
			time.Sleep(sleep)
			sleep = min(2*sleep, longestSleep)
		}
	}
}
