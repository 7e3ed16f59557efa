package exec

import (
	"math"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
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
