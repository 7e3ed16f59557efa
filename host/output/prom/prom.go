// Package prom writes what a run found as OpenMetrics text, for a scraper or node_exporter's textfile
// collector.  Only gauges and summaries are used, so that a reader of Prometheus' older text can read it too.
package prom

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/output/cases"
	"rdmarun/host/output/outfile"
	"rdmarun/host/record"
)

// Writer is the output.
type Writer struct {
	file    *outfile.File
	tracker *cases.Tracker
	// families have the last value of each series: a case that was repeated has one series.
	families map[string]*family
	failed   map[string]bool
	ended    bool
}

// New writes to file.
func New(file *outfile.File) *Writer {
	return &Writer{
		file: file, tracker: cases.NewTracker(cases.Limits{Measures: true}),
		families: make(map[string]*family), failed: make(map[string]bool),
	}
}

// Wants implements record.Consumer.
func (w *Writer) Wants(kind record.Kind) bool {
	return kind != record.StepEnd && kind != record.Output
}

// Record implements record.Consumer.
func (w *Writer) Record(r *record.Record) error {
	switch r.Kind {
	case record.RunStart:
		version := r.Run.Environment["version"]
		w.gauge(runInfo, 1, r.Run.Provider, version)
		w.gauge(runStart, float64(r.Time.UnixNano())/1e9)
	case record.RunEnd:
		w.ended = true
		w.totals(r.Totals)
	}
	if c := w.tracker.Record(r); c != nil {
		w.add(c)
	}
	return nil
}

// Close implements report.Output.
func (w *Writer) Close() error {
	defer w.file.Discard()
	for _, c := range w.tracker.Unfinished() {
		w.add(c)
	}
	w.gauge(runComplete, number(w.ended))
	for _, name := range slices.Sorted(maps.Keys(w.families)) {
		if err := w.families[name].write(w.file); err != nil {
			return fmt.Errorf("metrics: %s: %w", name, err)
		}
	}
	if _, err := io.WriteString(w.file, "# EOF\n"); err != nil {
		return err
	}
	return w.file.Commit()
}

func (w *Writer) gauge(of *metric, value float64, labels ...string) {
	w.family(of).values[join(labels)] = value
}

// family has the series of a metric.
func (w *Writer) family(of *metric) *family {
	f := w.families[of.name]
	if f == nil {
		f = &family{
			metric: of, values: make(map[string]float64), summaries: make(map[string]record.Distribution),
			tags: make(map[string]bool),
		}
		w.families[of.name] = f
	}
	return f
}

func (w *Writer) totals(t *record.Totals) {
	w.gauge(runDuration, t.Took.Seconds())
	for status, n := range map[string]int{
		"passed": t.Passed, "failed": t.Failed, "error": t.Errors, "skipped": t.Skipped,
		"not_run": t.NotRun, "xfailed": t.XFailed, "flaky": t.Flaky,
	} {
		w.gauge(runCases, float64(n), status)
	}
}

func (w *Writer) add(c *cases.Case) {
	if c.Result.Status == record.Skipped {
		return // neither ok nor not
	}
	w.failed[c.ID] = w.failed[c.ID] || !c.Result.Status.OK()
	w.gauge(caseOK, number(!w.failed[c.ID]), c.File, c.ID, c.Result.Name)
	w.gauge(caseDuration, c.Result.Took.Seconds(), c.File, c.ID)
	for _, threshold := range c.Thresholds.All() {
		w.gauge(thresholdOK, number(threshold.OK), c.File, c.ID, threshold.Text)
	}
	w.gauge(knownSteps, float64(len(c.Result.Known)), c.File, c.ID)
	for _, each := range c.Result.Faults {
		w.gauge(faultCount, float64(each.Count), c.File, c.ID, each.Name)
	}
	for _, each := range c.Result.Counters {
		w.gauge(counterGrew, float64(each.Grew), c.File, c.ID, each.Host, each.Device, each.Name)
	}
	for i := range c.Result.Loops {
		w.loop(c, &c.Result.Loops[i])
	}
	for i := range c.Meshes {
		w.mesh(c, &c.Meshes[i])
	}
	for _, m := range c.Measures {
		labels := []string{
			c.File, c.ID, m.Name, m.Operation, m.Direction(),
			strconv.FormatInt(m.Size, 10), positive(m.Depth), positive(m.QPs), m.Role,
		}
		if m.Printed != nil {
			value, unit := m.Printed.SI()
			w.measured(printed, value, append(slices.Clone(labels), unit), m.Tags)
		}
		if m.HasBandwidth() {
			w.measured(bandwidth, m.BitsPerSecond, labels, m.Tags)
		}
		if m.HasRate() {
			w.measured(messageRate, m.MessagesPerSecond, labels, m.Tags)
		}
		for _, d := range m.Latency {
			f := w.family(latency)
			f.summaries[f.tagged(append(slices.Clone(labels), d.Of), m.Tags)] = d
		}
	}
}

// loop has the rounds of a named loop and how long they took.
func (w *Writer) loop(c *cases.Case, loop *record.Loop) {
	labels := []string{c.File, c.ID, loop.Name}
	for status, n := range map[string]int{"ran": loop.Rounds, "late": loop.Late, "dropped": loop.Dropped} {
		w.measured(loopRounds, float64(n), append(slices.Clone(labels), status), loop.Tags)
	}
	if loop.Rounds == 0 {
		return
	}
	times := loop.OnClock()
	for of, took := range map[string]time.Duration{
		"min": times.Min, "p50": times.Median, "p99": times.P99, "max": times.Max,
	} {
		w.measured(loopTime, took.Seconds(), append(slices.Clone(labels), loop.ClockName(), of), loop.Tags)
	}
}

// mesh has the counts of a mesh and what explains its bad pairs, and no series for each pair: there may be thousands.
func (w *Writer) mesh(c *cases.Case, m *record.Mesh) {
	labels := []string{
		c.File, c.ID, m.Name, m.Operation, m.Direction(),
		strconv.FormatInt(m.Size, 10),
	}
	for status, n := range map[string]int{
		"measured": len(m.Pairs) - m.Lost, "suspect": m.Suspects, "outlier": m.Outliers, "lost": m.Lost,
	} {
		w.measured(meshPairs, float64(n), append(slices.Clone(labels), status), m.Tags)
	}
	if m.Blame != nil {
		w.measured(meshBlame, 1, append(slices.Clone(labels), m.Blame.Kind, strings.Join(m.Blame.Names, ", ")), m.Tags)
	}
}

func (w *Writer) measured(of *metric, value float64, labels []string, tags map[string]string) {
	f := w.family(of)
	f.values[f.tagged(slices.Clone(labels), tags)] = value
}

// positive prints a number that is there.
func positive(n int) string {
	if n <= 0 {
		return ""
	}
	return strconv.Itoa(n)
}

// Discard drops the report.
func (w *Writer) Discard() { w.file.Discard() }
