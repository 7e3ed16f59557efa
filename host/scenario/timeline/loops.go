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
	// known has them by name and tags.  Tags may be computed, so there may be as many as rounds of an outer loop.
	known map[string]*timing
	// Received are the loops of other processes.
	Received []record.Loop
	// active are the stages of the repeat that runs, one where it has none; nil outside of timed repeats.
	active []*timing
}

// maxSamples bounds the samples of a long repeat.  Beyond it, a uniform random selection is kept.
const maxSamples = 1 << 16

// timing has the times of one repeat, or of all with one name and tags.
type timing struct {
	name        string
	tags        map[string]string
	virtual     bool
	rounds      int
	late        int           // rounds that began later than they were due
	latest      time.Duration // the largest delay
	dropped     int           // rounds that were due and did not begin
	wall, clock spread
	random      *rand.Rand
}

// spread is a selection of times, with the extremes of all.
type spread struct {
	times    []time.Duration
	min, max time.Duration
}

// Part returns the loops of a part of the case, which Join adds.  A running repeat continues in it.
func (l *Loops) Part() Loops { return Loops{active: l.active} }

// Enter begins a repeat and reports whether it is timed.  Each of its stages has a series of its own.
func (l *Loops) Enter(name string, tags map[string]string, stages []string) bool {
	if l.active != nil {
		return false
	}
	begin := func(tags map[string]string) {
		l.active = append(l.active, &timing{name: name, tags: tags, random: rand.New(rand.NewPCG(1, 2))})
	}
	if stages == nil {
		begin(tags)
	}
	for _, stage := range stages {
		own := map[string]string{record.StageTag: stage}
		for tag, value := range tags {
			if tag != record.StageTag {
				own[tag] = value
			}
		}
		begin(own)
	}
	return true
}

// Round adds a round of a stage, and its delay.
func (l *Loops) Round(stage int, took Instant, late time.Duration) {
	s := l.active[stage]
	if s.round(took); late > 0 {
		s.late++
		s.latest = max(s.latest, late)
	}
}

// Drop counts rounds of a stage of the timed repeat that were due and did not begin.
func (l *Loops) Drop(stage, rounds int) { l.active[stage].dropped += rounds }

func (s *timing) round(took Instant) {
	s.rounds++
	at := s.rounds - 1
	if at >= maxSamples {
		at = s.random.IntN(s.rounds)
	}
	s.wall.add(at, took.Wall)
	s.clock.add(at, took.Clock)
}

// add stores a time at an index.  One beyond the samples counts for the extremes only.
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
	if len(s.times) == 0 {
		return record.Times{} // no round of a stage began
	}
	times := slices.Sorted(slices.Values(s.times)) // wall and clock keep their order, so that they pair up
	at := func(percentile float64) time.Duration { return times[record.PercentileRank(percentile, len(times))-1] }
	return record.Times{Min: s.min, Median: at(50), P99: at(99), Max: s.max}
}

// Leave ends the timed repeat.  One that was not completed is dropped.
func (l *Loops) Leave(completed, virtual bool) {
	stages := l.active
	l.active = nil
	for _, s := range stages {
		if s.virtual = virtual; completed {
			l.add(s)
		}
	}
}

// key is equal for repeats of one name and tags.
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
	series.rounds = rounds // also rounds without a kept time
	if s.rounds > 0 {
		series.wall.min, series.wall.max = min(series.wall.min, s.wall.min), max(series.wall.max, s.wall.max)
		series.clock.min, series.clock.max = min(series.clock.min, s.clock.min), max(series.clock.max, s.clock.max)
	}
}

// Join adds the loops of a branch or a part of the case.
func (l *Loops) Join(part *Loops) {
	for _, s := range part.series {
		l.add(s)
	}
	l.Received = append(l.Received, part.Received...)
}

// Records returns all series, and the loops of other processes.
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
	return append(list, l.Received...)
}
