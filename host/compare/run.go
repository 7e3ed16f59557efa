package compare

import (
	"errors"
	"io"
	"maps"
	"slices"
	"strings"

	"rdmarun/host/output/cases"
	"rdmarun/host/output/jsonl"
	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
)

// Run is what a comparison keeps of a run.  It is a record.Consumer: of a run that goes on, or of a file.
type Run struct {
	Name string
	// Environment has the facts of the machine and, under "DEVICE FACT", of the devices.
	Environment map[string]string
	// Complete means that the records reach the end of a run that nothing has cut short.
	Complete bool
	cases    map[string]*samples
	order    []string
	baseline record.Baseline
	tracker  *cases.Tracker
}

// NewRun is a run without records so far.
func NewRun(name string) *Run {
	return &Run{
		Name: name, Environment: make(map[string]string), cases: make(map[string]*samples),
		baseline: make(record.Baseline),
		tracker:  cases.NewTracker(cases.Limits{Measures: true, Histograms: cases.MaxHistograms}),
	}
}

// samples are the attempts of one case.
type samples struct {
	statuses []record.Status
	// passed are the values of the attempts that passed, apart from thresholds, and those of all meshes.
	passed values
	// failed are what the attempts that failed have measured.
	failed     values
	parameters map[string]string
	// pairs are the pairs of meshes, by their names, with what became of them last.
	pairs map[string]pairState
}

func newSamples() *samples {
	return &samples{
		passed: make(values), failed: make(values),
		parameters: make(map[string]string), pairs: make(map[string]pairState),
	}
}

// pairState is the result of a pair and its measured value.
type pairState struct {
	status string
	figure float64
	unit   string
}

// metric is something that is measured.
type metric struct {
	name string
	unit string
	size int64 // of messages, 0 for none
	// more means that more of it is better, pair that it is of a pair of a mesh.
	more, pair bool
}

// values are the samples of metrics.
type values map[metric][]float64

// duration is the metric every case has; its unit is seconds.
var duration = metric{name: "duration", unit: "s"}

// Read reads the records of a run.  A file without a run is an error: nothing in it is worse than before.
func Read(in io.Reader, name string) (*Run, error) {
	run, begun := NewRun(name), false
	_, err := jsonl.Read(in, name, func(r *record.Record) error {
		begun = begun || r.Kind == record.RunStart
		if !run.Wants(r.Kind) {
			return nil
		}
		return run.Record(r)
	})
	if err == nil && !begun {
		err = &jsonl.FormatError{Name: name, Line: 1, Err: errors.New("the file has no record of the start of a run")}
	}
	run.Finish()
	return run, err
}

// Wants implements record.Consumer.
func (r *Run) Wants(kind record.Kind) bool { return kind != record.StepEnd && kind != record.Output }

// Record implements record.Consumer.
func (r *Run) Record(each *record.Record) error {
	switch each.Kind {
	case record.RunStart:
		maps.Copy(r.Environment, each.Run.Environment)
		r.Environment["provider"] = each.Run.Provider
	case record.RunEnd:
		r.Complete = !each.Totals.Interrupted && !each.Totals.TimedOut
	case record.DeviceUsed:
		// hosts of a lab have devices of one name
		device := strings.TrimSpace(each.Device.Host + " " + each.Device.Name)
		for _, fact := range each.Device.Facts() {
			if fact.Name == "host" || fact.Name == "node GUID" && each.Device.Provider == "soft" {
				continue // it is named already; drawn anew for each process
			}
			r.Environment[device+" "+fact.Name] = fact.Value
		}
	}
	if c := r.tracker.Record(each); c != nil {
		r.add(c)
	}
	return nil
}

// Finish counts the cases that never ended.
func (r *Run) Finish() {
	for _, c := range r.tracker.Unfinished() {
		r.add(c)
	}
}

// Baseline is what the run has found, for another one to be compared with.
func (r *Run) Baseline() record.Baseline { return r.baseline }

// Has reports whether a case is in the run.
func (r *Run) Has(id string) bool { return r.cases[id] != nil }

// IDs are those of the first cases, at most as many as asked for.
func (r *Run) IDs(most int) []string { return r.order[:min(most, len(r.order))] }

func (r *Run) add(c *cases.Case) {
	s := r.cases[c.ID]
	if s == nil {
		s = newSamples()
		r.cases[c.ID] = s
		r.order = append(r.order, c.ID)
	}
	s.statuses = append(s.statuses, c.Result.Status)
	maps.Copy(s.parameters, c.Start.Params)
	for i := range c.Meshes { // also of a case that failed: bad pairs may be why
		s.mesh(&c.Meshes[i])
	}
	if c.Result.Status != record.Passed && !c.Result.FailedByThreshold() {
		if c.Result.Status == record.Failed {
			for _, m := range c.Measures {
				s.failed.figures(&m, nameOf(&m), false)
			}
		}
		return // the time of a failure is no measure of speed
	}
	earlier := r.baseline[c.ID]
	if earlier == nil {
		earlier = &record.Earlier{}
		r.baseline[c.ID] = earlier
	}
	earlier.Results = append(earlier.Results, c.Result)
	s.passed.add(duration, c.Result.Took.Seconds())
	for i, title := range record.LoopTitles(c.Result.Loops) {
		if loop := &c.Result.Loops[i]; loop.Rounds > 0 {
			s.passed.add(metric{name: "loop " + title + ", p50", unit: "s"}, loop.Median.Seconds())
		}
	}
	for _, m := range c.Measures {
		s.passed.figures(&m, nameOf(&m), false)
		earlier.Add(m)
	}
	for i := range c.Meshes {
		earlier.AddMesh(&c.Meshes[i])
	}
}

// mesh adds the figures of the pairs of a mesh, and what became of them.
func (s *samples) mesh(found *record.Mesh) {
	for pair, m := range found.Measures() {
		m.Role = m.Ends[0] + " - " + m.Ends[1]
		is := pairState{
			status: pair.Status(),
			unit: map[string]string{
				record.BandwidthType: "bit/s", record.LatencyType: "s", record.ConnectType: "/s",
			}[found.Type],
		}
		if last := pair.Last(); last != nil && pair.Lost == "" {
			if is.figure = last.Figure(found.Type); found.Type == record.LatencyType {
				is.figure /= 1e9
			}
		}
		name := nameOf(m)
		s.pairs[name] = is
		if pair.Lost == "" {
			s.passed.figures(m, name, true)
		}
	}
}

// nameOf is the name of a measurement, which is the same in each run: it has all parameters of the measurement.
func nameOf(m *record.Measure) string {
	name := m.Name + " " + m.Role
	size := terminal.Units{}.Bytes(m.Size)
	if m.Size > 0 && !strings.Contains(m.Name, size) {
		name += " " + size
	}
	for _, knob := range m.Knobs() {
		if !strings.Contains(m.Name, knob.Value) {
			name += " " + knob.Value
		}
	}
	return name
}

// figures adds the results of a measurement.
func (v values) figures(m *record.Measure, name string, pair bool) {
	if m.Printed != nil {
		value, unit := m.Printed.SI()
		more := m.Printed.Unit == record.BitsPerSecond || m.Printed.Unit == record.PerSecond
		v.add(metric{name: name, unit: unit, more: more, pair: pair, size: m.Size}, value)
		return
	}
	if m.HasBandwidth() {
		v.add(metric{name: name + " bandwidth", unit: "bit/s", more: true, pair: pair, size: m.Size}, m.BitsPerSecond)
	} else if m.HasRate() && m.Type != record.LatencyType && len(m.Latency) == 0 {
		v.add(metric{name: name + " messages", unit: "/s", more: true, pair: pair, size: m.Size}, m.MessagesPerSecond)
	}
	for _, d := range m.Latency {
		v.add(metric{name: name + " " + d.Of + " p50", unit: "s", pair: pair, size: m.Size}, float64(d.P50)/1e9)
		v.add(metric{name: name + " " + d.Of + " p99", unit: "s", pair: pair, size: m.Size}, float64(d.P99)/1e9)
	}
}

func (v values) add(m metric, value float64) { v[m] = append(v[m], value) }

// hasPassed reports whether the case has passed at some attempt, apart from thresholds.
func (s *samples) hasPassed() bool { return len(s.passed[duration]) > 0 }

// compared are the values for a comparison: those of the attempts that passed, or if none did, what the failed ones
// have measured.
func (s *samples) compared() values {
	if s.hasPassed() {
		return s.passed
	}
	all := maps.Clone(s.passed) // the meshes
	maps.Copy(all, s.failed)
	return all
}

// endStatus is how a case ended over all attempts: one status, or that they differ.
func (s *samples) endStatus() string {
	if slices.ContainsFunc(s.statuses, func(each record.Status) bool { return each != s.statuses[0] }) {
		return "mixed"
	}
	return string(s.statuses[0])
}
