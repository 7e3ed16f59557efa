package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/progress"
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

// stretched is a limit of wall-clock time, multiplied by TimeScale.
func (c Config) stretched(limit time.Duration) time.Duration {
	if c.TimeScale <= 0 {
		return limit
	}
	return time.Duration(min(float64(limit)*c.TimeScale, math.MaxInt64/2))
}

// onClock is a limit on the provider's clock.  A virtual clock is exact on any machine.
func (r *caseRun) onClock(limit time.Duration) time.Duration {
	if r.testbed.Clock().Virtual() {
		return limit
	}
	return r.config.stretched(limit)
}

// stretchWithin stretches the `within` of a verb.
func (r *caseRun) stretchWithin(call *verb.Call) {
	if at := call.Verb.Argument("within"); at >= 0 {
		if within, given := call.Arguments[at].(time.Duration); given {
			call.Arguments[at] = r.onClock(within)
		}
	}
}

// scaleNote is the note that a limit was stretched.
func (r *caseRun) scaleNote() string {
	if r.onClock(time.Hour) == time.Hour {
		return ""
	}
	return fmt.Sprintf(" (its max times %g: --time-scale)", r.config.TimeScale)
}

// stall bounds the time of a step: the command line's value, or the scenario's.
func (r *caseRun) stall() time.Duration {
	if r.config.Stall > 0 {
		return r.config.Stall
	}
	return r.config.stretched(r.testCase.Stall)
}

// errNoMore ends the rounds of a repeat without a failure.
var errNoMore = errors.New("no other round begins")

// pace is the start times of the rounds of a repeat, and its end.
type pace struct {
	began timeline.Instant
	// limit is the time in which rounds begin, if limited. most bounds their number. due says when they are due; nil:
	// each when the one before has ended.
	limited bool
	limit   time.Duration
	due     schedule
	most    int
	// stage is that of the current round. dropped counts the rounds of each stage that were due when the limit ended
	// the repeat, and did not begin.
	stage   int
	dropped []int
	// key is the prefix of the messages in which the decider says whether another round begins; "" where each process
	// decides by itself.
	key string
}

// paceOf returns the pace of a repeat that begins now.
func (r *caseRun) paceOf(repeat *compile.Repeat, most int) (*pace, error) {
	p := &pace{began: r.now(), most: most}
	if most == progress.Unknown {
		p.most = math.MaxInt
	}
	if repeat.For != nil {
		limit, err := repeat.For.Get(r.env)
		if err != nil {
			return nil, err
		}
		p.limited, p.limit = true, limit.(time.Duration)
	}
	var err error
	if p.due, err = r.scheduleOf(repeat, p); err != nil {
		return nil, err
	}
	if repeat.Stages != nil {
		p.limited, p.limit = true, p.due.length()
	}
	if p.limited && !r.position.whole {
		r.position.Next()
		p.key = r.position.Key() + "/round/"
	}
	return p, nil
}

// awaitRound waits until a round is due.  It returns the time when it was due, and by how much the round before it
// delays it.  The error is errNoMore when the repeat's time is over.
func (r *caseRun) awaitRound(
	ctx context.Context, p *pace, round int,
) (due timeline.Instant, late time.Duration, err error) {
	due = r.now()
	// On a virtual clock rounds may take no time, so that the repeat would never end.
	lasted := max(due.Clock-p.began.Clock, due.Wall-p.began.Wall)
	if p.due != nil {
		after, stage := p.due.at(round)
		p.stage = stage
		at := p.began.Clock + after
		if late = due.Clock - at; round == 0 {
			late = 0 // no round before it could delay it
		}
		if !r.history.Virtual {
			due.Wall = at
		}
		due.Clock = at
		lasted = max(lasted, at-p.began.Clock)
	}
	if p.limited {
		more, err := r.another(ctx, p, round, lasted < p.limit)
		if err != nil {
			return due, 0, err
		}
		if !more {
			p.dropped = p.due.rest(round, p.most)
			return due, 0, errNoMore
		}
	}
	if late < 0 {
		r.testbed.Unlocked(func() { err = r.testbed.Clock().Sleep(ctx, -late) })
		return r.now(), 0, err
	}
	return due, late, nil
}

// another reports whether another round begins.  Where several processes run the repeat, the decider decides, since
// each has its own clock.
func (r *caseRun) another(ctx context.Context, p *pace, round int, own bool) (more bool, err error) {
	if p.key == "" {
		return own, nil
	}
	more = own
	decided, err := r.peers.decide(ctx, r, p.key, round, func() any { return own })
	if err == nil && decided != nil {
		err = json.Unmarshal(decided, &more)
	}
	return more, err
}
