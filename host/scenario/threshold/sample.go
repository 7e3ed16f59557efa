package threshold

import (
	"fmt"
	"maps"
	"slices"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
)

// sample has the fields of a threshold's metric in base units, and the values that its limits may mention.
type sample struct {
	what string // distinguishes it from others
	// one is the measurement of a latency sample; the times are those of a step of a connection, or "total".
	one *record.Measure
	of  string
	// group is equal for samples that are compared with each other.
	group  string
	fields map[string]float64
	env    expression.Env
	// tooFew is set when the measurement has fewer messages than its step demands, so that it has no fields.
	tooFew   bool
	messages uint64
}

// missing is the reason why a sample lacks a field of its metric.
func (s *sample) missing() string {
	switch {
	case s.tooFew && s.messages > 0:
		return fmt.Sprintf("too few samples of %s: %d", s.what, s.messages)
	case s.fields == nil:
		return "no samples of " + s.what
	case s.fields[sampleCount] == 1:
		return "there is one sample of " + s.what + ": there must be two to compare"
	}
	if _, isLoop := s.fields["late"]; isLoop && s.fields["count"] == 0 {
		reason := fmt.Sprintf("no samples: no round of %s began", s.what)
		if dropped := s.fields["dropped"]; dropped > 0 {
			reason += fmt.Sprintf(", and %g were dropped", dropped)
		}
		return reason
	}
	return "no samples: there are no intervals without sample_every"
}

// samples returns the samples of a threshold.
func (c *Checker) samples(threshold *compile.Threshold, values *Values) []sample {
	var list []sample
	switch threshold.Metric {
	case "duration":
		return []sample{{fields: map[string]float64{"value": float64(values.Took)}, env: c.limitEnv(nil)}}
	case "loop":
		titles := record.LoopTitles(values.Loops)
		for i, loop := range values.Loops {
			labels := map[string]string{"name": loop.Name}
			maps.Copy(labels, loop.Tags)
			if threshold.Chooses(labels, 0) {
				list = append(list, sample{what: titles[i], env: c.limitEnv(nil), fields: loopFields(&loop)})
			}
		}
		return list
	}
	if threshold.Metric == "counter" {
		return c.counterSamples(threshold, values.Counters())
	}
	for _, found := range values.Measures {
		if s, has := c.sampleOf(threshold, found); has {
			list = append(list, s)
		}
	}
	return list
}

// loopFields are the fields of a loop. It has no times where no round began.
func loopFields(loop *record.Loop) map[string]float64 {
	fields := map[string]float64{
		"count": float64(loop.Rounds), "late": float64(loop.Late), "dropped": float64(loop.Dropped),
	}
	if times := loop.OnClock(); loop.Rounds > 0 {
		fields["min"], fields["max"] = float64(times.Min), float64(times.Max)
		fields["p50"], fields["p99"] = float64(times.Median), float64(times.P99)
	}
	return fields
}

// counterSamples returns the counters of roles here that a threshold chooses, also those that have not grown.
func (c *Checker) counterSamples(threshold *compile.Threshold, counters []Counters) (list []sample) {
	for _, each := range counters {
		for _, name := range slices.Sorted(maps.Keys(each.Grown)) {
			labels := map[string]string{"name": name, "role": each.Role, "device": each.Device}
			if threshold.Chooses(labels, 0) {
				fields := map[string]float64{"value": float64(each.Grown[name])}
				list = append(list, sample{what: each.Role + " " + name, fields: fields, env: c.limitEnv(nil)})
			}
		}
	}
	return list
}

// sampleOf returns the sample of a measurement, if the threshold chooses it.
func (c *Checker) sampleOf(threshold *compile.Threshold, found []*record.Measure) (s sample, has bool) {
	var chosen []*record.Measure
	for _, m := range found {
		if threshold.Chooses(labelsOf(m, stepOf(threshold)), m.Size) {
			chosen = append(chosen, m)
		}
	}
	if chosen == nil || !isOf(threshold.Metric, chosen[0]) {
		return s, false
	}
	now, of := fieldsOf(threshold, chosen)
	then, _ := fieldsOf(threshold, c.earlier(chosen))
	s = sample{what: describe(chosen[0], of), of: of, fields: now, env: c.limitEnv(then), group: groupOf(chosen[0])}
	if len(chosen) == 1 {
		s.one = chosen[0]
	}
	for _, m := range chosen {
		if m.TooFew {
			s.fields, s.tooFew, s.messages = nil, true, m.Messages
		}
	}
	return s, true
}

// isOf reports whether a measurement has samples of a metric.
func isOf(metric string, m *record.Measure) bool {
	switch {
	case m.Printed != nil:
		return metric == compile.MetricOfPrinted(m.Printed.Unit)
	case metric == "connect_rate":
		return m.Type == record.ConnectType
	}
	return metric == m.Type
}

// limitEnv returns the names that limits may mention; then has the values of the baseline, nil without one.
func (c *Checker) limitEnv(then map[string]float64) expression.Env {
	env := make(expression.Env, len(c.Case.Constants)+1)
	for _, each := range c.Case.Constants {
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

// labelsOf returns the labels of a measurement for selectors: its tags, and what it measures.
func labelsOf(m *record.Measure, of string) map[string]string {
	labels := map[string]string{
		"name": m.Name, "op": m.Operation, "role": m.Role, "peer": m.Peer, "kind": m.Type, "of": of,
	}
	maps.Copy(labels, m.Tags)
	return labels
}

// fieldsOf returns the fields of a threshold's metric, of both ends together if there are two; nil when the metric has
// no samples.  A bandwidth and a rate of 0 are samples; a latency needs a message.
func fieldsOf(threshold *compile.Threshold, found []*record.Measure) (fields map[string]float64, of string) {
	if len(found) == 0 {
		return nil, ""
	}
	if printed := found[0].Printed; printed != nil {
		return map[string]float64{"value": printed.Value}, ""
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

// stepOf is the step of a connection that a threshold chooses, or "total".
func stepOf(threshold *compile.Threshold) string {
	for _, selector := range threshold.Selectors {
		if selector.Name == "of" {
			return selector.Value
		}
	}
	return "total"
}

// bandwidthFields has the minimum and maximum of the intervals only if intervals were requested.
func bandwidthFields(found []*record.Measure) map[string]float64 {
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

// describe distinguishes a measurement from others of its case.
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

// earlier returns the same measurements of an earlier run.
func (c *Checker) earlier(now []*record.Measure) (then []*record.Measure) {
	if c.Baseline == nil {
		return nil
	}
	for _, m := range now {
		if before, is := c.Baseline.Pairs[m.Key()]; is {
			then = append(then, &before)
			continue
		}
		for i := range c.Baseline.Measures {
			if before := &c.Baseline.Measures[i]; before.Key() == m.Key() {
				then = append(then, before)
			}
		}
	}
	if len(then) != len(now) {
		return nil // a sum of fewer is not comparable
	}
	return then
}
