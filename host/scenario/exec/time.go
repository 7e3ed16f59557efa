package exec

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/verb"
)

// loops times the rounds of named repeats.  Only the outermost one of several is timed.  A repeat that runs again,
// within a loop without a name, adds to the series of its name and tags.
type loops struct {
	series []*timing
	// known has them by name and tags: tags may be computed, so there may be as many as rounds of the loop around.
	known map[string]*timing
	// told are those of other processes.
	told   []record.Loop
	active *timing
}

// maxSamples bounds the memory of a long repeat; beyond it a fair selection stays.
const maxSamples = 1 << 16

// instant is a time since the case began on both clocks, which are one where the provider has the wall clock.
type instant struct{ wall, clock time.Duration }

func (r *caseRun) now() instant {
	wall := time.Since(r.begin)
	if !r.history.virtual {
		return instant{wall, wall}
	}
	return instant{wall, r.testbed.Clock().Now() - r.clockBegin}
}

func (r *caseRun) since(begin instant) instant {
	end := r.now()
	return instant{end.wall - begin.wall, end.clock - begin.clock}
}

// timing is the times of one repeat, or of all of one name and tags.
type timing struct {
	name        string
	tags        map[string]string
	virtual     bool
	rounds      int
	late        int           // rounds that began later than they were due
	latest      time.Duration // how late the latest of them was
	wall, clock spread
	random      *rand.Rand
}

// spread is a selection of times, with the extremes of all.
type spread struct {
	times    []time.Duration
	min, max time.Duration
}

// enter begins a repeat and tells whether it is timed.
func (l *loops) enter(name string, tags map[string]string) bool {
	if l.active != nil {
		return false
	}
	l.active = &timing{name: name, tags: tags, random: rand.New(rand.NewPCG(1, 2))}
	return true
}

// round notes a round, which has begun so late.
func (l *loops) round(took instant, late time.Duration) {
	if l.active.round(took); late > 0 {
		l.active.late++
		l.active.latest = max(l.active.latest, late)
	}
}

func (s *timing) round(took instant) {
	s.rounds++
	at := s.rounds - 1
	if at >= maxSamples {
		at = s.random.IntN(s.rounds)
	}
	s.wall.add(at, took.wall)
	s.clock.add(at, took.clock)
}

// add notes a time in the place at; one beyond the room counts for the extremes only.
func (s *spread) add(at int, took time.Duration) {
	if len(s.times) == 0 || took < s.min {
		s.min = took
	}
	s.max = max(s.max, took)
	switch {
	case at == len(s.times) && at < maxSamples:
		s.times = append(s.times, took)
	case at < len(s.times):
		s.times[at] = took
	}
}

func (s *spread) summary() record.Times {
	times := slices.Sorted(slices.Values(s.times)) // of wall and clock the order stays, so that each round has both
	at := func(q float64) time.Duration { return times[int(q*float64(len(times)-1)+0.5)] }
	return record.Times{Min: s.min, Median: at(0.5), P99: at(0.99), Max: s.max}
}

// leave ends the repeat that is timed; one that was not completed counts for nothing.
func (l *loops) leave(completed, virtual bool) {
	s := l.active
	l.active = nil
	if s.virtual = virtual; completed && s.rounds > 0 {
		l.add(s)
	}
}

// key is the same for repeats of one name and tags.
func (s *timing) key() string {
	key := strconv.Quote(s.name)
	for _, tag := range slices.Sorted(maps.Keys(s.tags)) {
		key += strconv.Quote(tag) + strconv.Quote(s.tags[tag])
	}
	return key
}

// add adds a repeat to the series of its name and tags.
func (l *loops) add(s *timing) {
	if l.known == nil {
		l.known = make(map[string]*timing)
	}
	key := s.key()
	series := l.known[key]
	if series == nil {
		l.series, l.known[key] = append(l.series, s), s
		return
	}
	rounds := series.rounds + s.rounds
	for i, took := range s.wall.times {
		series.round(instant{took, s.clock.times[i]})
	}
	series.late, series.latest = series.late+s.late, max(series.latest, s.latest)
	series.rounds = rounds // also those of which no time was kept
	series.wall.min, series.wall.max = min(series.wall.min, s.wall.min), max(series.wall.max, s.wall.max)
	series.clock.min, series.clock.max = min(series.clock.min, s.clock.min), max(series.clock.max, s.clock.max)
}

// join adds what a branch or a part of the case has timed.
func (l *loops) join(part *loops) {
	for _, s := range part.series {
		l.add(s)
	}
	l.told = append(l.told, part.told...)
}

// records are the series, and the loops of other processes.
func (l *loops) records() []record.Loop {
	var list []record.Loop
	for _, s := range l.series {
		wall := s.wall.summary()
		loop := record.Loop{
			Name: s.name, Tags: s.tags, Rounds: s.rounds, Late: s.late, Latest: s.latest, Min: wall.Min,
			Median: wall.Median, P99: wall.P99, Max: wall.Max,
		}
		if s.virtual {
			clock := s.clock.summary()
			loop.Clock = &clock
		}
		list = append(list, loop)
	}
	return append(list, l.told...)
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
