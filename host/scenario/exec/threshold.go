package exec

import (
	"fmt"
	"maps"
	"math"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/verb"
)

// thresholds checks the limits of a case that has run to its end, and writes a record of each.  One that does not hold
// fails the case, and so does one without anything measured: it would watch nothing.
func (r *caseRun) thresholds(took time.Duration) {
	if r.config.NoThresholds {
		return
	}
	for _, threshold := range r.testCase.Thresholds {
		if !r.wanted(threshold) {
			continue
		}
		samples := r.samples(threshold, took)
		for i := range threshold.Limits {
			r.limit(threshold, &threshold.Limits[i], samples)
		}
	}
}

// wanted tells whether the condition of a threshold holds.
func (r *caseRun) wanted(threshold *compile.Threshold) bool {
	if threshold.If == nil {
		return true
	}
	env, err := surroundings(r.config.Provider, r.testCase)
	if err != nil {
		r.environment(err)
		return false
	}
	env["baseline"] = nil
	if r.config.Baseline != nil {
		env["baseline"] = map[string]any{}
	}
	holds, err := threshold.If.Holds(env)
	return err == nil && holds
}

func (r *caseRun) limit(threshold *compile.Threshold, limit *compile.Limit, samples []watched) {
	checked := record.Threshold{
		Text: threshold.Text + " " + limit.Text, Line: limit.Span.Line, Column: limit.Span.Column, OK: len(samples) > 0,
	}
	if !checked.OK {
		checked.Reason = "no samples: the case has measured nothing of that kind"
	}
	worst := math.Inf(-1) // of the samples: the one shown
	for _, each := range samples {
		value, has := each.fields[limit.Field]
		if !has {
			checked.OK, checked.Reason = false, "no samples: there are no intervals without sample_every"
			continue
		}
		excess, err := limit.Excess(value, each.env)
		if err != nil {
			checked.OK, checked.Reason = false, err.Error()
			if each.env["baseline"] == nil {
				checked.Reason = "no baseline of it: --baseline names one, and \"if: baseline != nil\" leaves the threshold out without"
			}
			continue
		}
		checked.OK = checked.OK && excess <= 0
		if excess <= worst {
			continue
		}
		worst, checked.Value = excess, limit.Show(value)
		if len(samples) > 1 && excess > 0 {
			checked.Value += " (" + each.what + ")"
		}
	}
	if worst > 0 {
		checked.Reason = "" // what is broken says more than what could not be looked at
	}
	r.config.Stream.Write(&record.Record{
		Kind: record.Checked, File: r.program.File, Case: r.testCase.ID, Threshold: &checked,
	})
	if checked.OK {
		return
	}
	r.addFailure(record.Failure{
		Kind: record.KindThreshold, File: r.program.File, Line: checked.Line, Column: checked.Column,
		Excerpt: limit.Span.Excerpt(diag.Painter{}), What: "threshold not held: " + checked.String(), Rerun: r.rerun(),
	})
}

// samples lists what a threshold speaks of.
func (r *caseRun) samples(threshold *compile.Threshold, took time.Duration) []watched {
	var list []watched
	switch threshold.Metric {
	case "duration":
		return []watched{{fields: map[string]float64{"value": float64(took)}, env: r.limitEnv()}}
	case "loop":
		for _, loop := range r.loops.list() {
			labels := map[string]string{"name": loop.Name}
			for name, value := range loop.Tags {
				labels[name] = value
			}
			if threshold.Chooses(labels, 0) {
				times := loop.OnClock()
				list = append(list, watched{what: loop.Name, env: r.limitEnv(), fields: map[string]float64{
					"count": float64(loop.Rounds), "min": float64(times.Min), "p50": float64(times.Median), "p99": float64(times.P99), "max": float64(times.Max),
				}})
			}
		}
		return list
	}
	for _, found := range r.found {
		list = append(list, r.samplesOf(threshold, found)...)
	}
	return list
}

// measured is what one measurement of one size has found, at each end that has figures.
type measured []*record.Measure

// measure gives a call what it tells of its measurements to, and who may end them.
func (r *caseRun) measure(step *compile.Step, call *verb.Call) {
	call.Measured = func(found []*record.Measure) {
		for _, m := range found {
			r.locate(step, m)
			r.config.Stream.Write(&record.Record{Kind: record.Measured, File: r.program.File, Case: r.testCase.ID, Measure: m})
		}
		r.found = append(r.found, found)
		r.ended.Add(1) // not stalled
	}
	var watching []*compile.Threshold
	for _, threshold := range r.testCase.Thresholds {
		if threshold.Abort && !r.config.NoThresholds && r.wanted(threshold) {
			watching = append(watching, threshold)
		}
	}
	if watching == nil {
		return
	}
	call.Abort = func(found []*record.Measure) bool {
		for _, m := range found {
			r.locate(step, m)
		}
		for _, threshold := range watching {
			if r.broken(threshold, found) {
				return true
			}
		}
		return false
	}
}

// locate says which step of the file a measurement is of.  Nothing of the run changes while one of its steps measures, so any
// goroutine of it may ask.
func (r *caseRun) locate(step *compile.Step, m *record.Measure) {
	m.Name = m.Type
	if m.Operation != "" {
		m.Name += " " + m.Operation
	}
	if len(r.path) > 0 {
		m.Name = r.path[len(r.path)-1]
	}
	m.Tags, m.Line, m.Column = r.tags, step.Span.Line, step.Span.Column
	if file := step.Span.File(); file != r.program.File {
		m.File = file
	}
}

// broken tells whether a running measurement has broken a limit already.
func (r *caseRun) broken(threshold *compile.Threshold, found measured) bool {
	for _, sample := range r.samplesOf(threshold, found) {
		if found[0].Took < threshold.After {
			return false
		}
		for i := range threshold.Limits {
			limit := &threshold.Limits[i]
			value, has := sample.fields[limit.Field]
			if !has || limit.Grows() {
				continue
			}
			if excess, err := limit.Excess(value, sample.env); err == nil && excess > 0 {
				return true
			}
		}
	}
	return false
}

// watched is something that a threshold speaks of: the fields of its metric in their base units, and what its
// limits may mention.
type watched struct {
	what   string // to tell it from others
	fields map[string]float64
	env    expression.Env
}

// samplesOf lists what of a measurement a threshold speaks of.
func (r *caseRun) samplesOf(threshold *compile.Threshold, found measured) []watched {
	if len(found) == 0 {
		return nil
	}
	var chosen measured
	for _, m := range found {
		if threshold.Chooses(labelsOf(m, stepOf(threshold)), m.Size) {
			chosen = append(chosen, m)
		}
	}
	if chosen == nil || !metricHas(threshold.Metric, chosen[0].Type) {
		return nil
	}
	now, of := fieldsOf(threshold, chosen)
	if now == nil {
		return nil
	}
	s := watched{what: describe(chosen[0], of), fields: now, env: r.limitEnv()}
	if then, _ := fieldsOf(threshold, r.earlier(chosen)); then != nil {
		before := make(map[string]any, len(then))
		for name, value := range then {
			before[name] = value
		}
		s.env["baseline"] = before
	}
	return []watched{s}
}

// limitEnv is what limits may mention, without a baseline.
func (r *caseRun) limitEnv() expression.Env {
	env := make(expression.Env, len(r.testCase.Constants)+1)
	for _, each := range r.testCase.Constants {
		env[each.Name] = each.Value
	}
	env["baseline"] = nil
	return env
}

// earlier is what an earlier run has found in place of these.
func (r *caseRun) earlier(now measured) measured {
	if r.config.Baseline == nil {
		return nil
	}
	var then measured
	for _, m := range now {
		for i := range r.config.Baseline.Measures {
			if before := &r.config.Baseline.Measures[i]; before.Key() == m.Key() {
				then = append(then, before)
			}
		}
	}
	if len(then) != len(now) {
		return nil // a sum of fewer would compare what is not alike
	}
	return then
}

// labelsOf are what selectors choose a measurement by: its tags, and what it is.
func labelsOf(m *record.Measure, of string) map[string]string {
	labels := map[string]string{"name": m.Name, "op": m.Operation, "role": m.Role, "peer": m.Peer, "kind": m.Type, "of": of}
	maps.Copy(labels, m.Tags)
	return labels
}

func metricHas(metric, kind string) bool {
	return metric == kind || metric == "connect_rate" && kind == "connect"
}

// fieldsOf are the fields of a threshold's metric, of both ends together where there are two; nil when the
// metric has no samples there.
func fieldsOf(threshold *compile.Threshold, found measured) (fields map[string]float64, of string) {
	if len(found) == 0 || found[0].Messages == 0 {
		return nil, ""
	}
	switch threshold.Metric {
	case "bandwidth":
		return bandwidthFields(found), ""
	case "connect_rate":
		m := found[0]
		return map[string]float64{"avg": m.MessagesPerSecond, "count": float64(m.Messages), "errors": float64(m.Errors)}, ""
	}
	of = stepOf(threshold)
	for i := range found[0].Latency {
		if d := &found[0].Latency[i]; d.Of == of && d.Count > 0 {
			return timeFields(d, found[0].Errors), of
		}
	}
	return nil, ""
}

// stepOf is whose times a threshold speaks of: those of a step of connections, or of the whole.
func stepOf(threshold *compile.Threshold) string {
	for _, selector := range threshold.Selectors {
		if selector.Name == "of" {
			return selector.Value
		}
	}
	return "total"
}

func timeFields(d *record.Distribution, errors uint64) map[string]float64 {
	return map[string]float64{
		"count": float64(d.Count), "min": float64(d.Min), "avg": d.Mean, "stddev": d.StdDev, "p50": float64(d.P50),
		"p90": float64(d.P90), "p99": float64(d.P99), "p99_9": float64(d.P999), "p99_99": float64(d.P9999),
		"max": float64(d.Max), "errors": float64(errors),
	}
}

// bandwidthFields have the least and the most of the intervals only where intervals were asked for.
func bandwidthFields(found measured) map[string]float64 {
	fields := make(map[string]float64)
	for _, m := range found {
		fields["avg"] += m.BitsPerSecond
		fields["messages"] += m.MessagesPerSecond
		fields["count"] += float64(m.Messages)
	}
	for i, rate := range record.IntervalRates(found...) {
		if i == 0 {
			fields["min"], fields["max"] = rate, rate
		}
		fields["min"], fields["max"] = min(fields["min"], rate), max(fields["max"], rate)
	}
	return fields
}

// describe tells a measurement from others of its case.
func describe(m *record.Measure, of string) string {
	text := m.Name
	if m.Size > 0 {
		text += fmt.Sprintf(", %d bytes", m.Size)
	}
	if of != "" && of != "total" {
		text += ", " + of
	}
	return text
}
