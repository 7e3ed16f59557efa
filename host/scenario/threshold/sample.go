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
func (c *Checker) samples(threshold *compile.Threshold, values *Values) []sample {
	var list []sample
	switch threshold.Metric {
	case "duration":
		return []sample{{fields: map[string]float64{"value": float64(values.Took)}, env: c.limitEnv(nil)}}
	case "loop":
		for _, loop := range values.Loops {
			labels := map[string]string{"name": loop.Name}
			maps.Copy(labels, loop.Tags)
			if threshold.Chooses(labels, 0) {
				times := loop.OnClock()
				list = append(list, sample{what: loop.Name, env: c.limitEnv(nil), fields: map[string]float64{
					"count": float64(loop.Rounds), "late": float64(loop.Late),
					"dropped": float64(loop.Dropped), "min": float64(times.Min),
					"p50": float64(times.Median), "p99": float64(times.P99), "max": float64(times.Max),
				}})
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

// counterSamples are the counters of roles here that a threshold chooses, those that have not grown as well.
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

// sampleOf is what of a measurement a threshold speaks of, if anything.
func (c *Checker) sampleOf(threshold *compile.Threshold, found []*record.Measure) (s sample, has bool) {
	var chosen []*record.Measure
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
	then, _ := fieldsOf(threshold, c.earlier(chosen))
	s = sample{what: describe(chosen[0], of), of: of, fields: now, env: c.limitEnv(then), group: groupOf(chosen[0])}
	if len(chosen) == 1 {
		s.one = chosen[0]
	}
	return s, true
}

// limitEnv is what limits may mention; then is what the baseline has, nil for nothing.
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
func fieldsOf(threshold *compile.Threshold, found []*record.Measure) (fields map[string]float64, of string) {
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

// earlier is what an earlier run has found in place of these.
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
		return nil // a sum of fewer would compare what is not alike
	}
	return then
}
