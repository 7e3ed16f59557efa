package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// thresholds checks the limits of a case that has run to its end, and writes a record of each.  One that does not hold
// fails the case, and so does one without anything measured: it would watch nothing.  Of several processes that with
// the first role checks them: so a time of a clock, or an earlier run, is compared with the limits once.
func (r *caseRun) thresholds(ctx context.Context, took time.Duration) {
	if len(r.testCase.Thresholds) == 0 {
		return
	}
	var own []verdict
	decided, err := r.peers.decide(ctx, r, "thresholds/", 0, func() any { own = r.judged(took); return own })
	switch judge := r.roster.judge; {
	case judge == "":
		if err != nil {
			r.fail(&testbed.EnvironmentError{What: "tell the other processes of the thresholds", Err: err})
		}
		r.heed(own)
	case err != nil: // the end says why that process has ended
	default:
		verdicts, err := r.verdictsOf(decided)
		if err == nil {
			err = r.unjudged(verdicts)
		}
		if err != nil {
			r.fail(&testbed.EnvironmentError{
				What: "what the process of " + judge + " says of the thresholds", Err: err,
			})
			return
		}
		r.heed(verdicts)
	}
}

// verdict is what a limit of a threshold has found; both are numbers of the case's.
type verdict struct {
	Threshold int              `json:"threshold"`
	Limit     int              `json:"limit"`
	Checked   record.Threshold `json:"checked"`
}

// verdictsOf reads what the process says that judges: each limit has one verdict at most.  What the limit is the file
// says, and how a limit was held that process.
func (r *caseRun) verdictsOf(raw json.RawMessage) (verdicts []verdict, err error) {
	if err = json.Unmarshal(raw, &verdicts); err != nil {
		return nil, err
	}
	type place struct{ threshold, limit int }
	seen := make(map[place]bool)
	for i := range verdicts {
		each := &verdicts[i]
		if list := r.testCase.Thresholds; each.Threshold < 0 || each.Threshold >= len(list) || each.Limit < 0 ||
			each.Limit >= len(list[each.Threshold].Limits) {
			return nil, fmt.Errorf("there is no limit %d of a threshold %d", each.Limit, each.Threshold)
		}
		threshold := r.testCase.Thresholds[each.Threshold]
		limit := &threshold.Limits[each.Limit]
		own := unchecked(threshold, limit)
		if seen[place{each.Threshold, each.Limit}] {
			return nil, fmt.Errorf("two results of threshold %s", own.Text)
		}
		seen[place{each.Threshold, each.Limit}] = true
		own.OK, own.Value, own.Reason = each.Checked.OK, verb.Brief(each.Checked.Value), verb.Brief(each.Checked.Reason)
		own.Bounds = boundsTold(each.Checked.Bounds)
		each.Checked = own
	}
	return verdicts, nil
}

// boundsTold are the bounds that the process tells which judges, as far as they are any.
func boundsTold(told []record.Bound) (bounds []record.Bound) {
	for _, each := range told[:min(len(told), record.MostBounds)] {
		if math.IsNaN(each.Value) || math.IsInf(each.Value, 0) || each.Size < 0 {
			continue
		}
		each.Name, each.Of = verb.Brief(each.Name), verb.Brief(each.Of)
		bounds = append(bounds, each)
	}
	return bounds
}

// unjudged tells which limit the process that judges says nothing of.  Where nobody leads, it may have been told to
// check none.
func (r *caseRun) unjudged(verdicts []verdict) error {
	if r.config.NoThresholds || !r.config.led() {
		return nil
	}
	for i, threshold := range r.testCase.Thresholds {
		// the error is that of the process that judges, too
		if wanted, err := r.wanted(threshold); err != nil || !wanted {
			continue
		}
		for j := range threshold.Limits {
			if !slices.ContainsFunc(verdicts, func(v verdict) bool { return v.Threshold == i && v.Limit == j }) {
				own := unchecked(threshold, &threshold.Limits[j])
				return fmt.Errorf("no result of threshold %s", own.Text)
			}
		}
	}
	return nil
}

// judged are the verdicts of all limits.
func (r *caseRun) judged(took time.Duration) (verdicts []verdict) {
	if r.config.NoThresholds {
		return nil
	}
	for i, threshold := range r.testCase.Thresholds {
		wanted, err := r.wanted(threshold)
		if err != nil {
			r.fail(err)
		}
		if !wanted {
			continue
		}
		samples := r.samples(threshold, took)
		for j := range threshold.Limits {
			verdicts = append(verdicts, verdict{i, j, r.limit(threshold, &threshold.Limits[j], samples)})
		}
	}
	return verdicts
}

// wanted tells whether the condition of a threshold holds.
func (r *caseRun) wanted(threshold *compile.Threshold) (bool, error) {
	baseline := expression.Env{"baseline": nil}
	if r.config.Baseline != nil {
		baseline["baseline"] = map[string]any{}
	}
	holds, err := r.holds(threshold.If, baseline)
	if err != nil {
		return false, &stepError{span: threshold.If.Span, action: "thresholds", err: err}
	}
	return holds, nil
}

// unchecked is a limit that was not compared with anything.
func unchecked(threshold *compile.Threshold, limit *compile.Limit) record.Threshold {
	return record.Threshold{
		Text: threshold.Text + " " + limit.Text, Line: limit.Span.Line, Column: limit.Span.Column,
		Metric: threshold.Metric, Field: limit.Field,
	}
}

func (r *caseRun) limit(threshold *compile.Threshold, limit *compile.Limit, samples []sample) record.Threshold {
	checked := unchecked(threshold, limit)
	if limit.OfAll() {
		samples = r.samplesCompared(threshold, samples)
	}
	checked.OK = len(samples) > 0
	if !checked.OK {
		checked.Reason = "no samples: the case has measured nothing of that kind"
		if threshold.Metric == "counter" {
			checked.Reason = "no samples: no device of a role here has such a counter (rdmarun explain counters)"
		}
	}
	worst := math.Inf(-1) // of the samples: the one shown
	for _, each := range samples {
		value, has := each.fields[limit.Field]
		if !has {
			checked.OK, checked.Reason = false, each.missing()
			continue
		}
		excess, err := limit.Excess(value, each.env)
		if err != nil {
			checked.OK, checked.Reason = false, err.Error()
			if each.env["baseline"] == nil {
				checked.Reason = "no baseline of it: --baseline names one, and \"if: baseline != nil\" leaves the " +
					"threshold out without"
			}
			continue
		}
		if bound, err := limit.Bound(each.env); err == nil && each.one != nil &&
			len(checked.Bounds) < record.MostBounds {
			checked.Bounds = append(checked.Bounds, record.Bound{
				Name: each.one.Name, Of: each.of, Size: each.one.Size, Value: bound,
			})
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
		checked.Reason = "" // a limit that is broken says more than one that could not be checked
	}
	return checked
}

// heed writes the verdicts down; those that are broken fail the case.
func (r *caseRun) heed(verdicts []verdict) {
	for i := range verdicts {
		checked := &verdicts[i].Checked
		r.config.Stream.Write(&record.Record{
			Kind: record.Checked, File: r.program.File, Case: r.testCase.ID, Threshold: checked,
		})
		if checked.OK {
			continue
		}
		limit := &r.testCase.Thresholds[verdicts[i].Threshold].Limits[verdicts[i].Limit]
		r.addFailure(record.Failure{
			Kind: record.KindThreshold, File: r.program.File, Line: checked.Line, Column: checked.Column,
			Excerpt: limit.Span.Excerpt(diag.Painter{}), What: "threshold failed: " + checked.String(),
		})
	}
}

// sample is something that a threshold speaks of: the fields of its metric in their base units, and what its
// limits may mention.
type sample struct {
	what string // to tell it from others
	// one is the measurement that it is of alone, of its times: those of a step of a connection, or "total".
	one *record.Measure
	of  string
	// group is what samples have alike that are compared with each other.
	group  string
	fields map[string]float64
	env    expression.Env
}

// missing tells why a sample does not have a field of its metric.
func (s *sample) missing() string {
	switch {
	case s.fields == nil:
		return "no samples of " + s.what
	case s.fields[sampleCount] == 1:
		return "there is one sample of " + s.what + ": there must be two to compare"
	}
	return "no samples: there are no intervals without sample_every"
}

// samples lists what a threshold speaks of.
func (r *caseRun) samples(threshold *compile.Threshold, took time.Duration) []sample {
	var list []sample
	switch threshold.Metric {
	case "duration":
		return []sample{{fields: map[string]float64{"value": float64(took)}, env: r.limitEnv(nil)}}
	case "loop":
		for _, loop := range r.loops.records() {
			labels := map[string]string{"name": loop.Name}
			maps.Copy(labels, loop.Tags)
			if threshold.Chooses(labels, 0) {
				times := loop.OnClock()
				list = append(list, sample{what: loop.Name, env: r.limitEnv(nil), fields: map[string]float64{
					"count": float64(loop.Rounds), "late": float64(loop.Late), "min": float64(times.Min),
					"p50": float64(times.Median), "p99": float64(times.P99), "max": float64(times.Max),
				}})
			}
		}
		return list
	}
	if threshold.Metric == "counter" {
		return r.counterSamples(threshold)
	}
	for _, found := range r.found {
		if s, has := r.sampleOf(threshold, found); has {
			list = append(list, s)
		}
	}
	return list
}

// counterSamples are the counters of roles here that a threshold chooses, those that have not grown as well.
func (r *caseRun) counterSamples(threshold *compile.Threshold) (list []sample) {
	for _, role := range r.testbed.Roles() {
		grown := role.Counted()
		for _, name := range slices.Sorted(maps.Keys(grown)) {
			labels := map[string]string{"name": name, "role": role.Name, "device": role.Device().Name()}
			if threshold.Chooses(labels, 0) {
				fields := map[string]float64{"value": float64(grown[name])}
				list = append(list, sample{what: role.Name + " " + name, fields: fields, env: r.limitEnv(nil)})
			}
		}
	}
	return list
}

// broken tells whether a running measurement has broken a limit already.
func (r *caseRun) broken(threshold *compile.Threshold, found measured) bool {
	sample, has := r.sampleOf(threshold, found)
	if !has || found[0].Messages == 0 || found[0].Took < threshold.After {
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
	return false
}

// sampleOf is what of a measurement a threshold speaks of, if anything.
func (r *caseRun) sampleOf(threshold *compile.Threshold, found measured) (s sample, has bool) {
	var chosen measured
	for _, m := range found {
		if threshold.Chooses(labelsOf(m, stepOf(threshold)), m.Size) {
			chosen = append(chosen, m)
		}
	}
	if chosen == nil ||
		threshold.Metric != chosen[0].Type && (threshold.Metric != "connect_rate" || chosen[0].Type != "connect") {
		return s, false
	}
	now, of := fieldsOf(threshold, chosen)
	then, _ := fieldsOf(threshold, r.earlier(chosen))
	s = sample{what: describe(chosen[0], of), of: of, fields: now, env: r.limitEnv(then), group: groupOf(chosen[0])}
	if len(chosen) == 1 {
		s.one = chosen[0]
	}
	return s, true
}

// limitEnv is what limits may mention; then is what the baseline has, nil for nothing.
func (r *caseRun) limitEnv(then map[string]float64) expression.Env {
	env := make(expression.Env, len(r.testCase.Constants)+1)
	for _, each := range r.testCase.Constants {
		env[each.Name] = each.Value
	}
	env["baseline"] = nil
	if then != nil {
		baseline := make(map[string]any, len(then))
		for name, value := range then {
			baseline[name] = value
		}
		env["baseline"] = baseline
	}
	return env
}

// labelsOf are what selectors choose a measurement by: its tags, and what it is.
func labelsOf(m *record.Measure, of string) map[string]string {
	labels := map[string]string{
		"name": m.Name, "op": m.Operation, "role": m.Role, "peer": m.Peer, "kind": m.Type, "of": of,
	}
	maps.Copy(labels, m.Tags)
	return labels
}

// fieldsOf are the fields of a threshold's metric, of both ends together where there are two; nil when the
// metric has no samples there.  A bandwidth and a rate of 0 are samples; a latency needs a message.
func fieldsOf(threshold *compile.Threshold, found measured) (fields map[string]float64, of string) {
	if len(found) == 0 {
		return nil, ""
	}
	switch threshold.Metric {
	case "bandwidth":
		return bandwidthFields(found), ""
	case "connect_rate":
		m := found[0]
		return map[string]float64{
			"avg": m.MessagesPerSecond, "count": float64(m.Messages), "errors": float64(m.Errors),
		}, ""
	}
	of = stepOf(threshold)
	for i := range found[0].Latency {
		if d := &found[0].Latency[i]; d.Of == of && d.Count > 0 {
			return map[string]float64{
				"count": float64(d.Count), "min": float64(d.Min), "avg": d.Mean, "stddev": d.StdDev,
				"p50": float64(d.P50),
				"p90": float64(d.P90), "p99": float64(d.P99), "p99_9": float64(d.P999), "p99_99": float64(d.P9999),
				"max": float64(d.Max), "errors": float64(found[0].Errors),
			}, of
		}
	}
	return nil, of
}

// stepOf is the step of a connection that a threshold speaks of, or "total".
func stepOf(threshold *compile.Threshold) string {
	for _, selector := range threshold.Selectors {
		if selector.Name == "of" {
			return selector.Value
		}
	}
	return "total"
}

// bandwidthFields have the least and the most of the intervals only where intervals were asked for.
func bandwidthFields(found measured) map[string]float64 {
	fields := make(map[string]float64)
	for _, m := range found {
		fields["avg"] += m.BitsPerSecond
		fields["messages"] += m.MessagesPerSecond
		fields["count"] += float64(m.Messages)
	}
	if rates := record.IntervalRates(found...); len(rates) > 0 {
		fields["min"], fields["max"] = slices.Min(rates), slices.Max(rates)
	}
	return fields
}

// describe tells a measurement from others of its case.
func describe(m *record.Measure, of string) string {
	text := m.Name
	if m.Size > 0 {
		text += ", " + quantity.Bytes(m.Size)
	}
	if m.Ends[0] != "" {
		text += fmt.Sprintf(", %s and %s", m.Ends[0], m.Ends[1])
	}
	if of != "" && of != "total" {
		text += ", " + of
	}
	return text
}
