package exec

import (
	"errors"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/testbed"
)

// fail notes the failure of a step in the result.
func (r *caseRun) fail(err error) {
	f := r.describe(err)
	if f.Kind == "error" {
		r.result.Status, r.result.Reason = record.Errored, f.What
	}
	if r.result.Status == record.Errored {
		r.result.Failures = append(r.result.Failures, f)
		return
	}
	r.addFailure(f)
}

// describe makes what reports tell of the failure of a step.
func (r *caseRun) describe(err error) record.Failure {
	f := record.Failure{Kind: "expectation", File: r.program.File, Rerun: r.rerun(), Timeline: r.history.moments()}
	span, cut := diag.Span{}, "it was cut off in this step"
	var step *stepError
	if errors.As(err, &step) {
		f.Role, f.Action, f.Path, f.Used, span, err = step.role, step.action, step.path, step.used, step.span, step.err
		if step.advance != "" {
			cut += ", in " + step.advance
		}
	}
	var (
		failure     *testbed.Failure
		environment *testbed.EnvironmentError
		evaluation  *compile.EvaluationError
		expected    *expectationError
		timeout     *caseTimeout
		limit       *stepTimeout
		stuck       *stalled
	)
	if errors.As(err, &expected) && expected.expectation.Span.Source != nil {
		span = expected.expectation.Span
	}
	switch {
	case errors.As(err, &failure):
		f.What, f.Expected, f.Got, f.Hint = failure.What, failure.Expected, failure.Got, failure.Hint
	case errors.As(err, &evaluation):
		span = evaluation.Span
		f.What, f.Got, f.Hint = "a value cannot be computed", evaluation.Err.Error(), evaluation.Hint()
	case errors.As(err, &timeout), errors.As(err, &limit), errors.As(err, &stuck):
		f.What, f.Hint, f.Details = err.Error(), cut, r.lab.RunningGuests()
	case r.result.Status == record.Interrupted, r.result.Status == record.TimedOut:
		f.Kind, f.What, f.Hint = "stopped", r.result.Reason, cut
		f.Details = r.lab.RunningGuests()
	case errors.As(err, &environment):
		f.Kind, f.What = "error", err.Error()
		f.Hint = environment.Hint()
	default:
		f.What = err.Error()
	}
	f.Line, f.Column, f.Excerpt = span.Line, span.Column, span.Excerpt(diag.Painter{})
	if span.Source != nil {
		f.File = span.Source.Name
	}
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
