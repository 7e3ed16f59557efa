//go:build wasip1

package main

import (
	"fmt"
	"slices"
	"time"
)

// summary is the latency of one way: half of a round trip.
type summary struct{ minimum, median, p99, maximum time.Duration }

func summarize(roundTrips []time.Duration) summary {
	sorted := slices.Clone(roundTrips)
	slices.Sort(sorted)
	at := func(percent int) time.Duration { return sorted[(len(sorted)-1)*percent/100] / 2 }
	return summary{at(0), at(50), at(99), at(100)}
}

func (s summary) String() string {
	us := func(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
	return fmt.Sprintf("%9.2f %9.2f %9.2f %9.2f", us(s.minimum), us(s.median), us(s.p99), us(s.maximum))
}
