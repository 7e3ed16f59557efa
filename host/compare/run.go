package compare

import (
	"io"
	"maps"
	"slices"

	"rdmarun/host/report/cases"
	"rdmarun/host/report/jsonl"
	"rdmarun/host/scenario/record"
)

// Run is what a comparison keeps of a run.
type Run struct {
	Name        string
	Environment map[string]string
	cases       map[string]*samples
	order       []string
}

// samples are the attempts of one case.
type samples struct {
	statuses []record.Status
	values   map[metric][]float64
}

// metric is something that is measured.
type metric struct {
	name string
	unit string
	// more tells that more of it is better.
	more bool
}

// duration is the metric every case has; its unit is seconds.
var duration = metric{name: "duration", unit: "s"}

// Read reads the records of a run.
func Read(in io.Reader, name string) (*Run, error) {
	run := &Run{Name: name, cases: make(map[string]*samples)}
	tracker := cases.NewTracker(cases.Limits{Measures: 4096})
	_, err := jsonl.Read(in, name, func(r *record.Record) error {
		switch r.Kind {
		case record.RunStart:
			run.Environment = maps.Clone(r.Run.Environment)
			if run.Environment == nil {
				run.Environment = make(map[string]string)
			}
			run.Environment["provider"] = r.Run.Provider
		case record.StepEnd, record.Output:
			return nil
		}
		if c := tracker.Record(r); c != nil {
			run.add(c)
		}
		return nil
	})
	for _, c := range tracker.Unfinished() {
		run.add(c)
	}
	return run, err
}

func (r *Run) add(c *cases.Case) {
	s := r.cases[c.ID]
	if s == nil {
		s = &samples{values: make(map[metric][]float64)}
		r.cases[c.ID] = s
		r.order = append(r.order, c.ID)
	}
	s.statuses = append(s.statuses, c.Result.Status)
	if c.Result.Status != record.Passed {
		return // how long a failure took says nothing of speed
	}
	s.add(duration, c.Result.Took.Seconds())
	for _, loop := range c.Result.Loops {
		s.add(metric{name: "loop " + loop.Name + ", median round", unit: "s"}, loop.Median.Seconds())
	}
	for _, m := range c.Measures.All() {
		s.measure(&m)
	}
}

func (s *samples) measure(m *record.Measure) {
	name := m.Name + " " + m.Role
	if m.BitsPerSecond > 0 {
		s.add(metric{name: name + " bandwidth", unit: "bit/s", more: true}, m.BitsPerSecond)
	} else if m.MessagesPerSecond > 0 && len(m.Latency) == 0 {
		s.add(metric{name: name + " messages", unit: "/s", more: true}, m.MessagesPerSecond)
	}
	for _, d := range m.Latency {
		s.add(metric{name: name + " " + d.Of + " p50", unit: "s"}, float64(d.P50)/1e9)
		s.add(metric{name: name + " " + d.Of + " p99", unit: "s"}, float64(d.P99)/1e9)
	}
}

func (s *samples) add(m metric, value float64) { s.values[m] = append(s.values[m], value) }

// verdict is how a case ended over all attempts: one status, or that they differ.
func (s *samples) verdict() string {
	if slices.ContainsFunc(s.statuses, func(each record.Status) bool { return each != s.statuses[0] }) {
		return "mixed"
	}
	return string(s.statuses[0])
}
