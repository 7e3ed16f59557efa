package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/shell"
	"rdmarun/host/scenario/testbed"
)

// stepError is a step that failed, as the innermost step saw it.
type stepError struct {
	step   *compile.Step
	span   diag.Span // of the step, or of something in it
	role   string
	action string
	path   []string
	used   []string
	// advance is how far the loops around it were, "" outside of all.
	advance string
	// known says what an xfail expected instead, "" where none did.
	known string
	err   error
}

func (e *stepError) Error() string { return e.action + ": " + e.err.Error() }

func (e *stepError) Unwrap() error { return e.err }

// overtime is the cause of a context that a limit of time has ended.
type overtime struct {
	text string
	// ofStep tells that it is the limit of a step, so that an xfail may excuse it.
	ofStep bool
}

func (e *overtime) Error() string { return e.text }

func caseTimeout(limit time.Duration) error {
	return &overtime{text: "the case took longer than " + quantity.Time(limit) + " (timeout)"}
}

// failed makes the error of a step.  The innermost one stays.
func (r *caseRun) failed(step *compile.Step, role, action string, err error) *stepError {
	var inner *stepError
	if errors.As(err, &inner) {
		return inner
	}
	return &stepError{
		step: step, span: step.Span, role: role, action: action, path: slices.Clone(r.path), used: r.used(),
		advance: r.advances.String(), err: err,
	}
}

// fail notes the failure of a step in the result.
func (r *caseRun) fail(err error) {
	f := r.describe(err)
	if f.Kind == "error" {
		r.result.Status, r.result.Reason = record.Errored, f.What
	}
	r.addFailure(f)
}

// addFailure adds a failure to the result; a case without another end has failed.
func (r *caseRun) addFailure(f record.Failure) {
	if r.result.Status == record.Passed {
		r.result.Status = record.Failed
	}
	f.File, f.Rerun = cmp.Or(f.File, r.program.File), r.rerun()
	r.result.Failures = append(r.result.Failures, f)
}

// failedGuests notes the guests that had failed before the step that ended the case, whose failure may be their
// consequence.
func (r *caseRun) failedGuests() {
	for _, each := range r.testbed.FailedGuests() {
		r.addFailure(record.Failure{
			Kind: "expectation", Role: each.Role, Host: r.hostOf(each.Role), Action: "guest",
			What:     fmt.Sprintf("the guest had already ended: %s, exit code %d", each.Outcome, each.Exit),
			Expected: "exit 0, or a step that asks how it ended", Got: each.Reason + each.Trace,
		})
	}
}

// hostOf is the host of a role, as the controller of a lab tells it; else nothing, as processes of one user are no
// hosts.
func (r *caseRun) hostOf(role string) string {
	if r.config.Observes {
		return r.roster.where[role]
	}
	return ""
}

// describe makes what reports tell of the failure of a step.
func (r *caseRun) describe(err error) record.Failure {
	f := record.Failure{Kind: "expectation", Timeline: r.history.Moments()}
	span, cut, whole := diag.Span{}, "it was cut off in this step", err
	var step *stepError
	if errors.As(err, &step) {
		f.Role, f.Action, f.Path, f.Used, span, err = step.role, step.action, step.path, step.used, step.span, step.err
		if step.advance != "" {
			cut += ", in " + step.advance
		}
	}
	if gone := (*meeting.GoneError)(nil); !errors.As(err, &gone) { // which names the host that it is about
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
		f.What, f.Hint, f.Details = err.Error(), cut, r.testbed.RunningGuests()
	case r.result.Status == record.Interrupted, r.result.Status == record.TimedOut:
		f.Kind, f.What, f.Hint = "stopped", r.result.Reason, cut
		f.Details = r.testbed.RunningGuests()
	case errors.As(err, &environment):
		f.Kind, f.What, f.Hint = "error", err.Error(), environment.Hint()
	default:
		f.What = err.Error()
	}
	if of := (*fixtureError)(nil); errors.As(whole, &of) && f.Kind != "stopped" {
		f.Kind, f.What = "error", of.what(f.What)
	}
	f.Line, f.Column, f.Excerpt, f.File = span.Line, span.Column, span.Excerpt(diag.Painter{}), span.File()
	if step != nil && step.known != "" {
		f.Hint = joined(f.Hint, step.known)
	}
	return f
}

// joined is a hint with another behind it.
func joined(hint, more string) string {
	if hint == "" {
		return more
	}
	return hint + "\n" + more
}

// expectFailure reverses the result of a case that is known to fail: its failure is expected, and its success is not.
func (r *caseRun) expectFailure() {
	known := r.xfail
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
			Kind: "xpass", What: "it passed, and xfail says that it fails", Hint: "remove the xfail: " + known.Reason,
		})
	}
}

// allExpected tells whether the failures are those that an xfail expects, and adds a hint to each other one.
func (r *caseRun) allExpected(known *compile.XFail) bool {
	expected := true
	for i := range r.result.Failures {
		f := &r.result.Failures[i]
		if hint := unlike(known, *f); hint != "" {
			f.Hint, expected = joined(f.Hint, hint), false
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
	failure := record.Failure{Kind: "error", What: err.Error()}
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
		Kind: "bug", What: fmt.Sprintf("rdmarun itself failed: %v", value), Hint: "please report this",
		Details: []string{string(debug.Stack())},
	})
}

// leftovers fails a case that has passed so far but left messages unread.
func (r *caseRun) leftovers() {
	if found := r.testbed.Leftovers(); len(found) > 0 {
		r.addFailure(record.Failure{
			Kind: "leftover", What: "the case left behind what nobody asked for",
			Hint:    "poll, wait_event or drain it, or put `leftovers: ignore` on the step that causes it",
			Details: found, Timeline: r.history.Moments(),
		})
	}
}

func (r *caseRun) rerun() string { return r.config.RerunCase(r.program, r.testCase) }

// RerunCase is the command that runs a case alone, with the parameters that its file has: empty where nobody knows that
// of the run. A case that takes over what cases before it have shared runs behind them again, in the same order.
func (c *Config) RerunCase(program *compile.Program, testCase *compile.Case) string {
	if c.Rerun == "" {
		return ""
	}
	command := shell.Command(c.Rerun, program.Given, c.Seed)
	if c.TakesOver {
		if c.Shuffle != nil {
			command += " --shuffle=" + strconv.FormatUint(*c.Shuffle, 10)
		}
		return command + " " + shell.Word(program.File)
	}
	command += " " + shell.Word(program.File)
	if testCase.ID != program.File {
		command += " --id " + shell.Word(testCase.ID)
	}
	return command
}
