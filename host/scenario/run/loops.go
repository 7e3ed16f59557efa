package run

import (
	"math/rand/v2"
	"slices"
	"time"

	"rdmarun/host/scenario/record"
)

// loops times the rounds of named repeats.  Only the outermost one of several is timed.
type loops struct {
	done   []record.Loop
	active *sample
}

// maxSamples bounds the memory of a long repeat; beyond it a fair selection stays.
const maxSamples = 1 << 16

// sample is the times of one repeat.
type sample struct {
	name   string
	tags   map[string]string
	rounds int
	times  []time.Duration
	min    time.Duration
	max    time.Duration
	random *rand.Rand
}

// enter begins a repeat and tells whether it is timed.
func (l *loops) enter(name string, tags map[string]string) bool {
	if l.active != nil {
		return false
	}
	l.active = &sample{name: name, tags: tags, random: rand.New(rand.NewPCG(1, 2))}
	return true
}

func (l *loops) round(took time.Duration) {
	s := l.active
	if s.rounds == 0 || took < s.min {
		s.min = took
	}
	s.max = max(s.max, took)
	s.rounds++
	if len(s.times) < maxSamples {
		s.times = append(s.times, took)
	} else if i := s.random.IntN(s.rounds); i < maxSamples {
		s.times[i] = took
	}
}

func (l *loops) leave() {
	s := l.active
	l.active = nil
	if s.rounds == 0 {
		return
	}
	slices.Sort(s.times)
	at := func(q float64) time.Duration { return s.times[int(q*float64(len(s.times)-1)+0.5)] }
	l.done = append(l.done, record.Loop{Name: s.name, Tags: s.tags, Rounds: s.rounds, Min: s.min, Median: at(0.5), P99: at(0.99), Max: s.max})
}

// abandon forgets a repeat that failed half way.
func (l *loops) abandon() { l.active = nil }

// list is what was timed; a repeat that failed half way counts for nothing.
func (l *loops) list() []record.Loop { return l.done }
