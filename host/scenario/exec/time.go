package exec

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/timeline"
	"rdmarun/host/scenario/verb"
)

func (r *caseRun) now() timeline.Instant {
	wall := time.Since(r.begin)
	if !r.history.Virtual {
		return timeline.Instant{Wall: wall, Clock: wall}
	}
	return timeline.Instant{Wall: wall, Clock: r.testbed.Clock().Now() - r.clockBegin}
}

// stretched is a limit of wall-clock time, longer on a machine that was said to be slow.
func (c Config) stretched(limit time.Duration) time.Duration {
	if c.TimeScale <= 0 {
		return limit
	}
	return time.Duration(min(float64(limit)*c.TimeScale, math.MaxInt64/2))
}

// onClock is a limit of the provider's time.  A virtual clock is exact, whatever the machine.
func (r *caseRun) onClock(limit time.Duration) time.Duration {
	if r.testbed.Clock().Virtual() {
		return limit
	}
	return r.config.stretched(limit)
}

// stretchWithin lets a verb wait longer on a slow machine.
func (r *caseRun) stretchWithin(call *verb.Call) {
	if at := call.Verb.Argument("within"); at >= 0 {
		if within, given := call.Arguments[at].(time.Duration); given {
			call.Arguments[at] = r.onClock(within)
		}
	}
}

// scaleNote tells the reader of a limit that it was stretched.
func (r *caseRun) scaleNote() string {
	if r.onClock(time.Hour) == time.Hour {
		return ""
	}
	return fmt.Sprintf(" (its max times %g: --time-scale)", r.config.TimeScale)
}

// stall is how long a step may take: what the command line says, else the scenario.
func (r *caseRun) stall() time.Duration {
	if r.config.Stall > 0 {
		return r.config.Stall
	}
	return r.config.stretched(r.testCase.Stall)
}

// watch cancels the returned context when no step has ended, as counted by steps, for limit of wall-clock time; 0 is
// without limit.  While away is not 0 somebody else watches.
func watch(ctx context.Context, limit time.Duration, steps, away *atomic.Int64) (context.Context, func()) {
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
				cancel(&overtime{text: "no step has ended for " + quantity.Time(limit) + " (stall_timeout)"})
				return
			}
		}
	}()
	return watched, func() {
		cancel(nil)
		<-done
	}
}
