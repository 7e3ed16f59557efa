package exec

import (
	"context"
	"sync/atomic"
	"time"

	"rdmarun/host/scenario/quantity"
)

// stalled is the cause of a context that ended because no step did.
type stalled struct{ limit time.Duration }

func (e *stalled) Error() string {
	return "no step has ended for " + quantity.Time(e.limit) + " (stall_timeout)"
}

// stall is how long a step may take: what the command line says, else the scenario.
func (r *caseRun) stall() time.Duration {
	if r.config.Stall > 0 {
		return r.config.Stall
	}
	return r.config.stretched(r.testCase.Stall)
}

// watch cancels the returned context when steps stays the same for limit of the wall's time; 0 is without
// limit.
func watch(ctx context.Context, limit time.Duration, steps *atomic.Int64) (context.Context, func()) {
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
			if now := steps.Load(); now != seen {
				seen, since = now, time.Now()
			} else if time.Since(since) > limit {
				cancel(&stalled{limit})
				return
			}
		}
	}()
	return watched, func() {
		cancel(nil)
		<-done
	}
}
