package exec

import (
	"fmt"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
)

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
