package exec

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
)

// expectFailure turns the result of a case that is known to fail: its failure is expected, and its success
// is not.
func (r *caseRun) expectFailure(known *compile.XFail) {
	if known == nil {
		return
	}
	switch r.result.Status {
	case record.Failed:
		if !r.leaked() && r.allExpected(known) {
			r.result.Status, r.result.Reason = record.XFailed, known.Reason
		}
	case record.Passed:
		r.addFailure(record.Failure{
			Kind: "xpass", File: r.program.File, What: "it passed, and xfail says that it fails",
			Hint: "take the xfail away: " + known.Reason, Rerun: r.rerun(),
		})
	}
}

// allExpected tells whether the failures are those that an xfail expects, and says of each other one that it is not.
func (r *caseRun) allExpected(known *compile.XFail) bool {
	expected := true
	for i := range r.result.Failures {
		f := &r.result.Failures[i]
		if unlike := known.Unlike(compile.FailureFields{Action: f.Action, What: f.What, Got: f.Got}); unlike != "" {
			f.Hint, expected = joined(f.Hint, notExpected(known, unlike)), false
		}
	}
	return expected
}

// leaked tells whether something could not be freed, which no xfail excuses.
func (r *caseRun) leaked() bool {
	return slices.ContainsFunc(r.result.Failures, func(f record.Failure) bool { return f.Kind == "leak" })
}

// stopped notes that the run was ended from outside, in a step that err is of.
func (r *caseRun) stopped(ctx context.Context, err error) {
	r.result.Status = record.Interrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.result.Status = record.TimedOut
	}
	r.result.Reason = context.Cause(ctx).Error()
	r.fail(err)
}

// environment notes a fault of the surroundings.
func (r *caseRun) environment(err error) {
	r.result.Status, r.result.Reason = record.Errored, err.Error()
	failure := record.Failure{Kind: "error", File: r.program.File, What: err.Error(), Rerun: r.rerun()}
	var environment *testbed.EnvironmentError
	if errors.As(err, &environment) {
		failure.Hint = environment.Hint()
	}
	r.result.Failures = append(r.result.Failures, failure)
}

// recoverPanic turns a panic of a step into a result: the other cases still run, and the run exits
// with the code of a bug.
func (r *caseRun) recoverPanic() {
	value := recover()
	if value == nil {
		return
	}
	r.result.Status, r.result.Reason = record.Broken, fmt.Sprint(value)
	r.result.Failures = append(r.result.Failures, record.Failure{
		Kind: "bug", File: r.program.File, What: fmt.Sprintf("rdmarun itself failed: %v", value),
		Hint: "please report this", Details: []string{string(debug.Stack())}, Rerun: r.rerun(),
	})
}

// leftovers fails a case that has passed so far but left messages about.
func (r *caseRun) leftovers() {
	found := r.lab.Leftovers()
	if len(found) == 0 {
		return
	}
	r.addFailure(record.Failure{
		Kind: "leftover", File: r.program.File, What: "the case left behind what nobody asked for",
		Hint:    "poll, wait_event or drain it, or put `leftovers: ignore` on the step that causes it",
		Details: found, Timeline: r.history.moments(), Rerun: r.rerun(),
	})
}

func (r *caseRun) addFailure(f record.Failure) {
	if r.result.Status == record.Passed {
		r.result.Status = record.Failed
	}
	r.result.Failures = append(r.result.Failures, f)
}
