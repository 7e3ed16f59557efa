package exec

import (
	"math"
	"time"

	"rdmarun/host/scenario/compile"
)

// schedule is when the rounds of a repeat with a rate are due, by stages that follow each other.  A repeat without
// stages has one.
type schedule []load

// load is a stage of a schedule. The rate, in rounds a second, is constant or changes evenly.
type load struct {
	begin, length time.Duration
	rate, to      float64
	// before is how many rounds are due before the stage, which may end between two.  end is the first round that is
	// due after it.
	before float64
	end    int
}

// scheduleOf returns when the rounds of a repeat are due; nil where each begins when the one before has ended.
func (r *caseRun) scheduleOf(repeat *compile.Repeat, p *pace) (s schedule, err error) {
	get := func(value *compile.Value, otherwise float64) float64 {
		if value == nil || err != nil {
			return otherwise
		}
		var found any
		if found, err = value.Get(r.env); err != nil {
			return otherwise
		}
		return float64(found.(int))
	}
	if repeat.Rate != nil {
		length := time.Duration(math.MaxInt64)
		if p.limited {
			length = p.limit
		}
		rate := get(repeat.Rate, 1)
		return s.then(length, rate, rate), err
	}
	rate := 1.0
	for i := range repeat.Stages {
		stage := &repeat.Stages[i]
		length, wrong := stage.For.Get(r.env)
		if wrong != nil {
			return nil, wrong
		}
		begin := get(stage.Rate, rate)
		rate = get(stage.To, begin)
		s = s.then(length.(time.Duration), begin, rate)
	}
	return s, err
}

// then adds a stage.
func (s schedule) then(length time.Duration, rate, to float64) schedule {
	next := load{begin: s.length(), length: max(0, length), rate: rate, to: to}
	if len(s) > 0 {
		next.before = s[len(s)-1].after()
	}
	// A sum of fractions may be a whole number but for its last digits.
	const nearly = 1e-6
	next.end = int(min(math.Ceil(next.after()-nearly), math.MaxInt32<<20))
	return append(s, next)
}

// after is how many rounds are due before the end of the stage.
func (l *load) after() float64 {
	return l.before + (l.rate+l.to)/2*(float64(l.length)/float64(time.Second))
}

// length is how long all stages take.
func (s schedule) length() time.Duration {
	if len(s) == 0 {
		return 0
	}
	return s[len(s)-1].begin + s[len(s)-1].length
}

// at is when a round is due after the beginning of the repeat, and in which stage.  It is the end of the last one for a
// round that is due in none.
func (s schedule) at(round int) (after time.Duration, stage int) {
	for i := range s {
		if round < s[i].end {
			return s[i].begin + s[i].at(round), i
		}
	}
	return s.length(), len(s) - 1
}

// at is when a round is due after the beginning of the stage: the time t with rate*t + (to-rate)/length*t*t/2 rounds
// before it.
func (l *load) at(round int) time.Duration {
	rounds := max(0, float64(round)-l.before)
	grows := (l.to - l.rate) / (float64(l.length) / float64(time.Second)) // in a second
	root := math.Sqrt(max(0, l.rate*l.rate+2*grows*rounds))
	return min(time.Duration(2*rounds*float64(time.Second)/(l.rate+root)), l.length)
}

// rest counts the rounds from one on that are due, by stages. most bounds the rounds of all.
func (s schedule) rest(from, most int) []int {
	rest := make([]int, len(s))
	for i := range s {
		rest[i] = max(0, min(s[i].end, most)-from)
		from += rest[i]
	}
	return rest
}
