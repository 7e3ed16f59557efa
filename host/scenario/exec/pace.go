package exec

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"math/bits"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/progress"
	"rdmarun/host/scenario/timeline"
)

// errNoMore ends the rounds of a repeat, and is no failure.
var errNoMore = errors.New("no other round begins")

// pace says when the rounds of a repeat begin, and until when.
type pace struct {
	began timeline.Instant
	// limit is how long rounds begin, where there is one; rate is how many begin in a second, 0: each after the one
	// before; most is how many there are at most.
	limited bool
	limit   time.Duration
	rate    int
	most    int
	// dropped is how many rounds were due when the limit ended the repeat, and did not begin.
	dropped int
	// key begins those of the messages by which the process that judges says whether another round begins; "" where
	// each process decides by itself.
	key string
}

// paceOf begins the pace of a repeat.
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
		if !r.turns.whole {
			r.turns.next()
			p.key = r.stepKey() + "/round/"
		}
	}
	if repeat.Rate != nil {
		rate, err := repeat.Rate.Get(r.env)
		if err != nil {
			return nil, err
		}
		p.rate = rate.(int)
	}
	return p, nil
}

// awaitRound waits until a round is due.  The time that it returns is when it was: late is how long ago.  The error is
// errNoMore where its time is over.
func (r *caseRun) awaitRound(
	ctx context.Context, p *pace, round int,
) (due timeline.Instant, late time.Duration, err error) {
	due = r.now()
	// On a virtual clock rounds may take no time at all, and there would be no end of them.
	lasted := max(due.Clock-p.began.Clock, due.Wall-p.began.Wall)
	if p.rate > 0 {
		at := p.began.Clock + time.Duration(round)*time.Second/time.Duration(p.rate)
		late = due.Clock - at
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
			p.dropped = max(0, min(p.dueRounds(), p.most)-round)
			return due, 0, errNoMore
		}
	}
	if late < 0 {
		r.testbed.Unlocked(func() { err = r.testbed.Clock().Sleep(ctx, -late) })
		return r.now(), 0, err
	}
	return due, late, nil
}

// dueRounds is how many rounds a rate wants within the limit.
func (p *pace) dueRounds() int {
	high, low := bits.Mul64(uint64(max(0, p.limit)), uint64(p.rate))
	rounds, rest := bits.Div64(high, low, uint64(time.Second))
	if rest > 0 {
		rounds++
	}
	return int(min(rounds, math.MaxInt))
}

// another tells whether another round begins: of a repeat that several processes walk through, as the one that judges
// says, since each has its own clock.
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
