package timeline

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"rdmarun/host/record"
)

// Loops times the rounds of named repeats.  Only the outermost one of several is timed.  A repeat that runs again,
// within a loop without a name, adds to the series of its name and tags.
type Loops struct {
	series []*timing
	// known has them by name and tags: tags may be computed, so there may be as many as rounds of the loop around.
	known map[string]*timing
	// Told are those of other processes.
	Told   []record.Loop
	active *timing
}

// maxSamples bounds the memory of a long repeat; beyond it a fair selection stays.
const maxSamples = 1 << 16

// timing is the times of one repeat, or of all of one name and tags.
type timing struct {
	name        string
	tags        map[string]string
	virtual     bool
	rounds      int
	late        int           // rounds that began later than they were due
	latest      time.Duration // how late the latest of them was
	dropped     int           // rounds that were due and did not begin
	wall, clock spread
	random      *rand.Rand
}

// spread is a selection of times, with the extremes of all.
type spread struct {
	times    []time.Duration
	min, max time.Duration
}

// Part is for the loops of a part of the case, which Join adds: what times now goes on.
func (l *Loops) Part() Loops { return Loops{active: l.active} }

// Enter begins a repeat and reports whether it is timed.
func (l *Loops) Enter(name string, tags map[string]string) bool {
	if l.active != nil {
		return false
	}
	l.active = &timing{name: name, tags: tags, random: rand.New(rand.NewPCG(1, 2))}
	return true
}

// Round notes a round, which has begun so late.
func (l *Loops) Round(took Instant, late time.Duration) {
	if l.active.round(took); late > 0 {
		l.active.late++
		l.active.latest = max(l.active.latest, late)
	}
}

// Drop notes rounds of the repeat that is timed which were due and did not begin.
func (l *Loops) Drop(rounds int) { l.active.dropped += rounds }

func (s *timing) round(took Instant) {
	s.rounds++
	at := s.rounds - 1
	if at >= maxSamples {
		at = s.random.IntN(s.rounds)
	}
	s.wall.add(at, took.Wall)
	s.clock.add(at, took.Clock)
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

// Leave ends the repeat that is timed; one that was not completed counts for nothing.
func (l *Loops) Leave(completed, virtual bool) {
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
func (l *Loops) add(s *timing) {
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
		series.round(Instant{took, s.clock.times[i]})
	}
	series.late, series.latest = series.late+s.late, max(series.latest, s.latest)
	series.dropped += s.dropped
	series.rounds = rounds // also those of which no time was kept
	series.wall.min, series.wall.max = min(series.wall.min, s.wall.min), max(series.wall.max, s.wall.max)
	series.clock.min, series.clock.max = min(series.clock.min, s.clock.min), max(series.clock.max, s.clock.max)
}

// Join adds what a branch or a part of the case has timed.
func (l *Loops) Join(part *Loops) {
	for _, s := range part.series {
		l.add(s)
	}
	l.Told = append(l.Told, part.Told...)
}

// Records are the series, and the loops of other processes.
func (l *Loops) Records() []record.Loop {
	var list []record.Loop
	for _, s := range l.series {
		wall := s.wall.summary()
		loop := record.Loop{
			Name: s.name, Tags: s.tags, Rounds: s.rounds, Late: s.late, Latest: s.latest,
			Dropped: s.dropped, Min: wall.Min, Median: wall.Median, P99: wall.P99, Max: wall.Max,
		}
		if s.virtual {
			clock := s.clock.summary()
			loop.Clock = &clock
		}
		list = append(list, loop)
	}
	return append(list, l.Told...)
}
