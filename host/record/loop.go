package record

import (
	"time"
)

// Loop is a named repeat, with the times of its rounds on the wall's clock.
type Loop struct {
	Name string `json:"name"`
	// Tags are those of its step and of the steps around it.
	Tags   map[string]string `json:"tags,omitempty"`
	Rounds int               `json:"rounds"`
	Min    time.Duration     `json:"min_ns"`
	Median time.Duration     `json:"median_ns"`
	P99    time.Duration     `json:"p99_ns"`
	Max    time.Duration     `json:"max_ns"`
	// Clock are the times on the provider's clock, which thresholds speak of, where that is a virtual one.
	Clock *Times `json:"clock,omitempty"`
}

// Times are what most of several took, and the least and the most.
type Times struct {
	Min    time.Duration `json:"min_ns"`
	Median time.Duration `json:"median_ns"`
	P99    time.Duration `json:"p99_ns"`
	Max    time.Duration `json:"max_ns"`
}

// OnClock are the times on the provider's clock.
func (l *Loop) OnClock() Times {
	if l.Clock != nil {
		return *l.Clock
	}
	return Times{Min: l.Min, Median: l.Median, P99: l.P99, Max: l.Max}
}
