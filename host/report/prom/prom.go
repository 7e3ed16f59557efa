// Package prom writes what a run found as OpenMetrics text, for a scraper or node_exporter's textfile
// collector.  Only gauges and summaries are used, so that a reader of Prometheus' older text can read it too.
package prom

import (
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"rdmarun/host/report/cases"
	"rdmarun/host/report/output"
	"rdmarun/host/scenario/record"
)

// Writer is the output.
type Writer struct {
	file    *output.File
	tracker *cases.Tracker
	// metrics has the last value of each series: a case that was repeated has one series.
	metrics map[string]prometheus.Metric
	failed  map[string]bool
	err     error
	ended   bool
}

// New writes to file.
func New(file *output.File) *Writer {
	return &Writer{
		file: file, tracker: cases.NewTracker(cases.Limits{Measures: 1024}),
		metrics: make(map[string]prometheus.Metric), failed: make(map[string]bool),
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
	return w.err
}

// Close implements report.Output.
func (w *Writer) Close() error {
	defer w.file.Discard()
	for _, c := range w.tracker.Unfinished() {
		w.add(c)
	}
	w.gauge(runComplete, number(w.ended))
	if w.err != nil {
		return w.err
	}
	registry := prometheus.NewPedanticRegistry()
	if err := registry.Register(w); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	families, err := registry.Gather()
	if err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	encoder := expfmt.NewEncoder(w.file, expfmt.NewFormat(expfmt.TypeOpenMetrics))
	for _, family := range families {
		if err := encoder.Encode(family); err != nil {
			return err
		}
	}
	if closer, ok := encoder.(expfmt.Closer); ok {
		if err := closer.Close(); err != nil { // the line "# EOF"
			return err
		}
	}
	return w.file.Commit()
}

// Describe implements prometheus.Collector.
func (w *Writer) Describe(out chan<- *prometheus.Desc) {
	for _, each := range descriptions {
		out <- each
	}
}

// Collect implements prometheus.Collector.
func (w *Writer) Collect(out chan<- prometheus.Metric) {
	for _, metric := range w.metrics {
		out <- metric
	}
}

func (w *Writer) gauge(of *prometheus.Desc, value float64, labels ...string) {
	metric, err := prometheus.NewConstMetric(of, prometheus.GaugeValue, value, valid(labels)...)
	w.keep(of, metric, err, labels)
}

func (w *Writer) keep(of *prometheus.Desc, metric prometheus.Metric, err error, labels []string) {
	if err != nil {
		w.err = fmt.Errorf("metrics: %w", err)
		return
	}
	w.metrics[fmt.Sprintf("%p%q", of, labels)] = metric
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
	w.failed[c.ID] = w.failed[c.ID] || !c.Result.Status.Fine()
	w.gauge(caseOK, number(!w.failed[c.ID]), c.File, c.ID)
	w.gauge(caseDuration, c.Result.Took.Seconds(), c.File, c.ID)
	for _, threshold := range c.Thresholds.All() {
		w.gauge(thresholdOK, number(threshold.OK), c.File, c.ID, threshold.Text)
	}
	for _, m := range c.Measures.All() {
		labels := []string{c.File, c.ID, m.Name, strconv.FormatInt(m.Size, 10), m.Role}
		if m.BitsPerSecond > 0 {
			w.gauge(bandwidth, m.BitsPerSecond, labels...)
		}
		if m.MessagesPerSecond > 0 {
			w.gauge(messageRate, m.MessagesPerSecond, labels...)
		}
		for _, d := range m.Latency {
			w.summary(&d, append(labels, d.Of))
		}
	}
}

func (w *Writer) summary(d *record.Distribution, labels []string) {
	seconds := func(ns int64) float64 { return time.Duration(ns).Seconds() }
	metric, err := prometheus.NewConstSummary(latency, uint64(d.Count), d.Mean*float64(d.Count)/1e9, map[float64]float64{
		0: seconds(d.Min), 0.5: seconds(d.P50), 0.9: seconds(d.P90), 0.99: seconds(d.P99),
		0.999: seconds(d.P999), 0.9999: seconds(d.P9999), 1: seconds(d.Max),
	}, valid(labels)...)
	w.keep(latency, metric, err, labels)
}

// Discard drops the report.
func (w *Writer) Discard() { w.file.Discard() }
