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

// thresholds checks the limits of a case that has run to its end, and writes a record of each.  One that does not hold
// fails the case, and so does one without anything measured: it would watch nothing.  Of several processes that with
// the first role checks them: so a time of a clock, or an earlier run, is compared with the limits once.
func (r *caseRun) thresholds(ctx context.Context, took time.Duration) {
	if len(r.testCase.Thresholds) == 0 {
		return
	}
	var own []threshold.Verdict
	decided, err := r.peers.decide(ctx, r, "thresholds/", 0, func() any { own = r.judged(took); return own })
	switch judge := r.roster.judge; {
	case judge == "":
		if err != nil {
			r.fail(&testbed.EnvironmentError{What: "tell the other processes of the thresholds", Err: err})
		}
		r.heed(own)
	case err != nil: // the end says why that process has ended
	default:
		verdicts, err := r.checker().Read(decided)
		// Without a controller, that process may have been told to check none.
		if err == nil && r.config.led() && !r.config.NoThresholds {
			err = r.checker().Missing(verdicts)
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

// checker compares what the case has measured with its limits.
func (r *caseRun) checker() *threshold.Checker {
	return &threshold.Checker{Case: r.testCase, Holds: r.holds, Baseline: r.config.Baseline}
}

// judged are the verdicts of all limits.
func (r *caseRun) judged(took time.Duration) []threshold.Verdict {
	if r.config.NoThresholds {
		return nil
	}
	values := threshold.Values{Took: took, Loops: r.loops.Records(), Measures: r.found, Counters: r.counters}
	return r.checker().Check(values, func(condition *compile.Requirement, err error) {
		r.fail(&stepError{span: condition.Span, action: "thresholds", err: err})
	})
}

// counters are those of the roles here.
func (r *caseRun) counters() (list []threshold.Counters) {
	for _, role := range r.testbed.Roles() {
		list = append(list, threshold.Counters{
			Role: role.Name, Device: role.Device().Name(), Grown: role.Counted(),
		})
	}
	return list
}

// heed writes the verdicts down; those that are broken fail the case.
func (r *caseRun) heed(verdicts []threshold.Verdict) {
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
