package exec

import (
	"fmt"
	"math"
	"time"

	"rdmarun/host/scenario/verb"
)

// stretched is a limit of the wall's time, longer on a machine that was said to be slow.
func (c Config) stretched(limit time.Duration) time.Duration {
	if c.TimeScale <= 0 {
		return limit
	}
	return time.Duration(min(float64(limit)*c.TimeScale, math.MaxInt64/2))
}

// onClock is a limit of the provider's time.  A virtual clock is exact, whatever the machine.
func (r *caseRun) onClock(limit time.Duration) time.Duration {
	if r.lab.Clock().Virtual() {
		return limit
	}
	return r.config.stretched(limit)
}

// stretchWithin lets a verb wait longer on a slow machine.
func (r *caseRun) stretchWithin(call *verb.Call) {
	at := call.Verb.Argument("within")
	if at < 0 || at >= len(call.Arguments) {
		return
	}
	if within, ok := call.Arguments[at].(time.Duration); ok {
		call.Arguments[at] = r.onClock(within)
	}
}

// scaleNote tells the reader of a limit that it was stretched.
func (r *caseRun) scaleNote() string {
	if r.onClock(time.Hour) == time.Hour {
		return ""
	}
	return fmt.Sprintf(" (its max times %g: --time-scale)", r.config.TimeScale)
}
