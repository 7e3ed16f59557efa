package cases

import (
	"slices"
	"time"

	"rdmarun/host/record"
)

// Limits are how much of a case is kept; a report of a long case shows how it began and how it ended.  What was measured
// is kept wholly or not at all: figures are what a run was made for.
type Limits struct {
	Steps, Lines int
	Measures     bool
	// Histograms is how many measurements keep their histogram and their intervals, which are most of their size.
	Histograms int
}

// Tracker puts cases together.  Cases may run at once.
type Tracker struct {
	limits Limits
	open   map[key]*open
	ended  int
	// devices are what cases run on, as far as there are records of them.
	devices []record.Device
}

// Devices lists what cases ran on, in the order of the records.
func (t *Tracker) Devices() []record.Device { return t.devices }

// Device is one of them, nil when nothing is known of it.
func (t *Tracker) Device(name string) *record.Device {
	for i := range t.devices {
		if t.devices[i].Name == name {
			return &t.devices[i]
		}
	}
	return nil
}

// MostHistograms is more than anybody looks at, and some ten MiB of a case.
const MostHistograms = 4096

// mostThresholds is more than a scenario has: one that did not hold must not be lost.
const mostThresholds = 4096

type key struct {
	id      string
	attempt int
}

type open struct {
	Case
	elapsed time.Duration
	number  int
}

// NewTracker makes one.
func NewTracker(limits Limits) *Tracker {
	return &Tracker{limits: limits, open: make(map[key]*open)}
}

// Record takes a record and returns the case that ended with it, if one did.  An attempt that was tried
// again is dropped.
func (t *Tracker) Record(r *record.Record) *Case {
	if r.Kind == record.DeviceUsed {
		t.devices = append(t.devices, *r.Device)
	}
	if r.Case == "" {
		return nil
	}
	k := key{r.Case, r.Attempt}
	c := t.open[k]
	if c == nil || r.Kind == record.CaseStart {
		c = t.begin(r)
		t.open[k] = c
	}
	switch r.Kind {
	case record.CaseStart:
		c.Start = *r.Start
	case record.StepEnd:
		c.Steps.add(*r.Step)
	case record.Output:
		c.Lines.add(Line{At: r.Elapsed - c.elapsed, Line: *r.Line})
	case record.Measured:
		c.measured(*r.Measure, t.limits)
	case record.Before:
		c.Before = append(c.Before, *r.Measure)
	case record.Checked:
		c.Thresholds.add(*r.Threshold)
	case record.CaseRetry:
		delete(t.open, k)
	case record.CaseEnd:
		delete(t.open, k)
		c.Result = *r.Result
		return t.end(c)
	}
	return nil
}

func (t *Tracker) begin(r *record.Record) *open {
	c := &open{elapsed: r.Elapsed, number: t.ended + len(t.open)}
	c.File, c.ID, c.Attempt, c.Begin = r.File, r.Case, r.Attempt, r.Time
	c.Steps = newTail[record.Step](t.limits.Steps)
	c.Lines = newTail[Line](t.limits.Lines)
	c.Thresholds = newTail[record.Threshold](mostThresholds)
	return c
}

// measured keeps a measurement, as far as its size allows.
func (c *Case) measured(m record.Measure, limits Limits) {
	if !limits.Measures {
		return
	}
	if len(c.Measures) >= limits.Histograms {
		m.Intervals, m.Latency = nil, slices.Clone(m.Latency) // the record's own stays whole
		for i := range m.Latency {
			m.Latency[i].HDR = ""
		}
	}
	c.Measures = append(c.Measures, m)
}

func (t *Tracker) end(c *open) *Case {
	t.ended++
	c.Order = t.ended
	return &c.Case
}

// Unfinished ends the cases that never did, because rdmarun was killed, and returns them: a report that
// left them out would look better than the run was.
func (t *Tracker) Unfinished() []*Case {
	var all []*open
	for _, c := range t.open {
		all = append(all, c)
	}
	clear(t.open)
	slices.SortFunc(all, func(a, b *open) int { return a.number - b.number })
	list := make([]*Case, len(all))
	for i, c := range all {
		name := c.Start.Name
		if name == "" {
			name = c.ID
		}
		c.Result = record.Result{Name: name, Status: record.Errored, Reason: NeverEnded}
		list[i] = t.end(c)
	}
	return list
}

// NeverEnded is the reason of a case with whose run rdmarun ended.
const NeverEnded = "the records end while this case was running: rdmarun was killed, or could not write"
