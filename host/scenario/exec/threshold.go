package exec

import (
	"context"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/threshold"
)

// thresholds checks the limits of a case that has run to its end, and writes a record of each.  A limit that does not
// hold fails the case, and so does one without samples: it would watch nothing.  Of several processes only the decider
// checks, so that one clock and one earlier run count.
func (r *caseRun) thresholds(ctx context.Context, took time.Duration) {
	if len(r.testCase.Thresholds) == 0 {
		return
	}
	var own []threshold.Result
	decided, err := r.peers.decide(ctx, r, "thresholds/", 0, func() any { own = r.checkThresholds(took); return own })
	switch decider := r.roster.decider; {
	case decider == "":
		if err != nil {
			r.fail(&testbed.EnvironmentError{What: "send the thresholds to the other processes", Err: err})
		}
		r.recordThresholds(own)
	case err != nil: // end reports why that process has ended
	default:
		results, err := r.checker().Read(decided)
		// Without a controller, that process may have been started without thresholds.
		if err == nil && r.config.hasController() && !r.config.NoThresholds {
			err = r.checker().Missing(results)
		}
		if err != nil {
			r.fail(&testbed.EnvironmentError{
				What: "read the thresholds of the process of " + decider, Err: err,
			})
			return
		}
		r.recordThresholds(results)
	}
}

// checker compares what the case has measured with its limits.
func (r *caseRun) checker() *threshold.Checker {
	return &threshold.Checker{Case: r.testCase, Holds: r.holds, Baseline: r.config.Baseline}
}

// checkThresholds returns the results of all limits.
func (r *caseRun) checkThresholds(took time.Duration) []threshold.Result {
	if r.config.NoThresholds {
		return nil
	}
	values := threshold.Values{Took: took, Loops: r.loops.Records(), Measures: r.found, Counters: r.counters}
	return r.checker().Check(values, func(condition *compile.Requirement, err error) {
		r.fail(&stepError{span: condition.Span, action: "thresholds", err: err})
	})
}

// thresholdsOfTooFew records the limits on measurements with too few messages, one of which has ended the case.  Each
// process has the same measurements, and checks for itself.
func (r *caseRun) thresholdsOfTooFew() {
	if r.config.NoThresholds {
		return
	}
	results := r.checker().CheckTooFew(threshold.Values{Measures: r.found})
	r.recordThresholds(results)
	r.tooFew = len(results) > 0
}

// counters are the counters of the roles here.
func (r *caseRun) counters() (list []threshold.Counters) {
	for _, role := range r.testbed.Roles() {
		list = append(list, threshold.Counters{
			Role: role.Name, Device: role.Device().Name(), Grown: role.Counted(),
		})
	}
	return list
}

// recordThresholds writes the records of results.  An exceeded limit fails the case.
func (r *caseRun) recordThresholds(results []threshold.Result) {
	for i := range results {
		checked := &results[i].Checked
		r.write(record.Record{Kind: record.Checked, Threshold: checked})
		if checked.OK {
			continue
		}
		limit := &r.testCase.Thresholds[results[i].Threshold].Limits[results[i].Limit]
		r.addFailure(record.Failure{
			Kind: record.KindThreshold, File: r.scenario.File, Line: checked.Line, Column: checked.Column,
			Excerpt: limit.Span.Excerpt(diag.Painter{}), What: "threshold failed: " + checked.String(),
		})
	}
}
