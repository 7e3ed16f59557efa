package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
)

// stepError is a failed step, as the innermost step reports it.
type stepError struct {
	step   *compile.Step
	span   diag.Span // of the step, or of something in it
	role   string
	action string
	path   []string
	used   []string
	// progress is the progress of the loops around it; "" outside of loops.
	progress string
	// known is what an xfail expected instead; "" without an xfail.
	known string
	err   error
}

func (e *stepError) Error() string { return e.action + ": " + e.err.Error() }

func (e *stepError) Unwrap() error { return e.err }

// overtime is the cause of a context that a time limit has ended.
type overtime struct {
	text string
	// ofStep means that it is the limit of a step, so that an xfail may excuse it.
	ofStep bool
}

func (e *overtime) Error() string { return e.text }

func caseTimeout(limit time.Duration) error {
	return &overtime{text: "the case took longer than " + quantity.Time(limit) + " (timeout)"}
}

// failed makes the error of a step.  The error of the innermost step is kept.
func (r *caseRun) failed(step *compile.Step, role, action string, err error) *stepError {
	var inner *stepError
	if errors.As(err, &inner) {
		return inner
	}
	return &stepError{
		step: step, span: step.Span, role: role, action: action, path: slices.Clone(r.path), used: r.used(),
		progress: r.progress.String(), err: err,
	}
}

// fail adds the failure of a step to the result.  If the step took too long, the failure names the guests and programs
// that run, and their places.
func (r *caseRun) fail(err error) {
	f := r.describe(err)
	if f.Kind == record.KindStopped || isLate(err) {
		r.stillRunning = r.testbed.RunningExecutables()
		f.Details = append(f.Details, r.stillRunning...)
	}
	if f.Kind == record.KindError {
		r.result.Status, r.result.Reason = record.Errored, f.What
	}
	r.addFailure(f)
}

// isLate reports whether the time of a step or of its case was over.
func isLate(err error) bool {
	var failure *testbed.Failure
	var late *overtime
	return errors.As(err, &failure) && failure.Late || errors.As(err, &late)
}

// addFailure adds a failure to the result.  A case without another status has failed.
func (r *caseRun) addFailure(f record.Failure) {
	if r.result.Status == record.Passed {
		r.result.Status = record.Failed
	}
	f.File, f.Rerun = cmp.Or(f.File, r.scenario.File), r.config.Rerun
	r.result.Failures = append(r.result.Failures, f)
}

// failedExecutables adds the guests and programs that had failed before the step that ended the case with err, nil for
// none.  The step's failure may be a consequence of theirs.  In a case that was stopped, it leaves out those that the
// stop has ended.
func (r *caseRun) failedExecutables(stopped bool, err error) {
	if !stopped {
		r.testbed.AwaitEnding(err != nil)
	}
	ends := r.testbed.FailedExecutables()
	if failure := (*testbed.Failure)(nil); errors.As(err, &failure) && failure.Ended != nil {
		ends = append(ends, *failure.Ended)
	}
	for _, each := range ends {
		if stopped && each.Outcome == "stopped" {
			continue // with the case
		}
		r.causes++
		r.addFailure(record.Failure{
			Kind: record.KindExpectation, Role: each.Role, Host: r.hostOf(each.Role), Action: each.What,
			What:     fmt.Sprintf("the %s had already ended: %s, exit code %d", each.What, each.Outcome, each.Exit),
			Expected: "exit 0, or a step that asks how it ended", Got: each.Reason + each.Trace,
		})
	}
}

// hostOf is the host of a role in a lab; "" in other runs, where processes of one user are not hosts.
func (r *caseRun) hostOf(role string) string {
	if r.config.IsController {
		return r.roster.where[role]
	}
	return ""
}

// describe makes the record of a step's failure.
func (r *caseRun) describe(err error) record.Failure {
	f := record.Failure{Kind: record.KindExpectation, Timeline: r.history.Moments()}
	span, cut, whole := diag.Span{}, "it was cut off in this step", err
	var step *stepError
	if errors.As(err, &step) {
		f.Role, f.Action, f.Path, f.Used, span, err = step.role, step.action, step.path, step.used, step.span, step.err
		if step.progress != "" {
			cut += ", in " + step.progress
		}
	}
	if gone := (*meeting.GoneError)(nil); !errors.As(err, &gone) { // that error names its host
		f.Host = r.hostOf(f.Role)
	}
	var (
		failure     *testbed.Failure
		environment *testbed.EnvironmentError
		evaluation  *compile.EvaluationError
		late        *overtime
	)
	switch {
	case errors.As(err, &failure):
		f.What, f.Expected, f.Got, f.Hint = failure.What, failure.Expected, failure.Got, failure.Hint
		if failure.Span.Source != nil {
			span = failure.Span
		}
	case errors.As(err, &evaluation):
		span = evaluation.Span
		f.What, f.Got, f.Hint = "a value cannot be computed", evaluation.Err.Error(), evaluation.Hint()
	case errors.As(err, &late):
		f.What, f.Hint = err.Error(), cut
	case r.result.Status == record.Interrupted, r.result.Status == record.TimedOut:
		f.Kind, f.What, f.Hint = record.KindStopped, r.result.Reason, cut
	case errors.As(err, &environment):
		f.Kind, f.What, f.Hint = record.KindError, err.Error(), environment.Hint()
	default:
		f.What = err.Error()
	}
	if of := (*fixtureError)(nil); errors.As(whole, &of) && f.Kind != record.KindStopped {
		f.Kind, f.What = record.KindError, of.what(f.What)
	}
	f.Line, f.Column, f.Excerpt, f.File = span.Line, span.Column, span.Excerpt(diag.Painter{}), span.File()
	if step != nil && step.known != "" {
		f.Hint = joined(f.Hint, step.known)
	}
	return f
}

// joined joins two hints, of which the first may be empty.
func joined(hint, more string) string { return strings.TrimPrefix(hint+"\n"+more, "\n") }

// expectFailure reverses the result of a case that is known to fail: failure is expected, success is not.
func (r *caseRun) expectFailure() {
	known := r.xfail
	if known == nil {
		return
	}
	switch r.result.Status {
	case record.Failed:
		leaked := slices.ContainsFunc(r.result.Failures, func(f record.Failure) bool {
			return f.Kind == record.KindLeak
		})
		if !leaked && r.allExpected(known) { // no xfail excuses a leak
			r.result.Status, r.result.Reason = record.XFailed, known.Reason
		}
	case record.Passed:
		r.addFailure(record.Failure{
			Kind: record.KindXPass, What: "it passed, and xfail says that it fails",
			Hint: "remove the xfail: " + known.Reason,
		})
	}
}

// allExpected reports whether an xfail expects all failures, and adds a hint to each unexpected one.
func (r *caseRun) allExpected(known *compile.XFail) bool {
	expected := true
	for i := range r.result.Failures {
		f := &r.result.Failures[i]
		if r.tooFew && f.Kind == record.KindThreshold {
			continue // a consequence of the measurement's failure
		}
		if hint := unlike(known, *f); hint != "" {
			f.Hint, expected = joined(f.Hint, hint), false
		}
	}
	return expected
}

// stopped records that the run was ended from outside, during the step of err.
func (r *caseRun) stopped(ctx context.Context, err error) {
	r.result.Status = record.Interrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.result.Status = record.TimedOut
	}
	r.result.Reason = context.Cause(ctx).Error()
	r.fail(err)
}

// environment records an error of the environment.
func (r *caseRun) environment(err error) {
	r.result.Status, r.result.Reason = record.Errored, err.Error()
	failure := record.Failure{Kind: record.KindError, What: err.Error()}
	var environment *testbed.EnvironmentError
	if errors.As(err, &environment) {
		failure.Hint = environment.Hint()
	}
	r.addFailure(failure)
}

// recoverPanic turns a panic of a step into a result: the other cases still run, and the run exits
// with the code of a bug.
func (r *caseRun) recoverPanic() {
	value := recover()
	if value == nil {
		return
	}
	r.result.Status, r.result.Reason = record.Broken, fmt.Sprint(value)
	r.addFailure(record.Failure{
		Kind: record.KindBug, What: fmt.Sprintf("rdmarun itself failed: %v", value), Hint: "please report this",
		Details: []string{string(debug.Stack())},
	})
}

// leftovers fails a case that has passed so far but left messages unread.
func (r *caseRun) leftovers() {
	if found := r.testbed.Leftovers(); len(found) > 0 {
		r.addFailure(record.Failure{
			Kind: record.KindLeftover, What: "the case left unmatched completions or events",
			Hint:    "poll, wait_event or drain it, or put `leftovers: ignore` on the step that causes it",
			Details: found, Timeline: r.history.Moments(),
		})
	}
}
