package run

import (
	"fmt"
	"time"

	"rdmarun/host/scenario/plan"
	"rdmarun/host/scenario/record"
)

// thresholds checks the limits of a case that has run to its end, and writes a record of each.  One without
// anything measured does not hold: it would watch nothing.
func (r *caseRun) thresholds(took time.Duration) {
	if r.config.NoThresholds {
		return
	}
	for _, threshold := range r.testCase.Thresholds {
		if threshold.If != nil {
			env, err := surroundings(r.config.Provider, r.testCase)
			if err != nil {
				r.environment(err)
				return
			}
			if holds, err := threshold.If.Holds(env); err != nil || !holds {
				continue
			}
		}
		measured := r.measured(threshold, took)
		for i := range threshold.Limits {
			r.limit(threshold, &threshold.Limits[i], measured)
		}
	}
}

func (r *caseRun) limit(threshold *plan.Threshold, limit *plan.Limit, measured []map[string]any) {
	checked := record.Threshold{
		Text: threshold.Metric + " " + limit.Text, Line: limit.Span.Line, Column: limit.Span.Column, OK: len(measured) > 0,
	}
	if !checked.OK {
		checked.Reason = "no samples: the case has measured nothing of that kind"
	}
	for _, fields := range measured {
		value := fields[limit.Field]
		if ok := limit.Holds(value); !ok || checked.Value == "" {
			checked.Value, checked.OK = fmt.Sprint(value), checked.OK && ok
		}
	}
	r.config.Stream.Write(&record.Record{
		Kind: record.Checked, File: r.program.File, Case: r.testCase.ID, Threshold: &checked,
	})
}

// measured lists what a threshold speaks of, each with the fields of its metric.
func (r *caseRun) measured(threshold *plan.Threshold, took time.Duration) []map[string]any {
	switch threshold.Metric {
	case "duration":
		return []map[string]any{{"value": took}}
	case "loop":
		var list []map[string]any
		for _, loop := range r.loops.list() {
			if chosen(threshold.Labels, loop.Name, loop.Tags) {
				list = append(list, map[string]any{"count": loop.Rounds, "min": loop.Min, "p50": loop.Median, "p99": loop.P99, "max": loop.Max})
			}
		}
		return list
	}
	return nil
}

// chosen tells whether a threshold speaks of what has a name and tags: all its labels must be there.
func chosen(labels map[string]string, name string, tags map[string]string) bool {
	for label, want := range labels {
		got, has := tags[label]
		if label == "name" && !has {
			got, has = name, true
		}
		if !has || got != want {
			return false
		}
	}
	return true
}
