package exec

import (
	"fmt"
	"math"
	"time"

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
