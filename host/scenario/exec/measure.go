package exec

import (
	"maps"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/verb"
)

// measured is what one measurement of one size has found, at each end that has figures.
type measured []*record.Measure

// measure gives a call what it tells of its measurements to, and who may end them.
func (r *caseRun) measure(step *compile.Step, call *verb.Call) {
	call.Measured = func(found []*record.Measure) {
		for _, m := range found {
			r.place(step, m)
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
			r.place(step, m)
		}
		for _, threshold := range watching {
			if r.broken(threshold, found) {
				return true
			}
		}
		return false
	}
}

// place says where a measurement stands.  Nothing of the run changes while one of its steps measures, so any
// goroutine of it may ask.
func (r *caseRun) place(step *compile.Step, m *record.Measure) {
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
