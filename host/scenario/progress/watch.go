package progress

import (
	"context"
	"sync/atomic"
	"time"
)

// Watch cancels the returned context when no step has ended, as counted by steps, for limit of wall-clock time; 0 is
// without limit.  While away is not 0, another process watches.  The cause is stalled.
func Watch(
	ctx context.Context, limit time.Duration, steps, away *atomic.Int64, stalled error,
) (context.Context, func()) {
	if limit <= 0 {
		return ctx, func() {}
	}
	watched, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		seen, since := steps.Load(), time.Now()
		tick := time.NewTicker(max(limit/20, time.Millisecond))
		defer tick.Stop()
		for {
			select {
			case <-watched.Done():
				return
			case <-tick.C:
			}
			if now := steps.Load(); now != seen || away.Load() > 0 {
				seen, since = now, time.Now()
			} else if time.Since(since) > limit {
				cancel(stalled)
				return
			}
		}
	}()
	return watched, func() {
		cancel(nil)
		<-done
	}
}
