package exec

import (
	"errors"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
)

// stepError is a step that failed, as the innermost step saw it.
type stepError struct {
	span   diag.Span
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

// caseTimeout is the cause of a context that the time of a case has ended.
type caseTimeout struct{ limit time.Duration }

func (e *caseTimeout) Error() string { return "the case took longer than " + quantity.Time(e.limit) }

// stepTimeout is the cause of a context that the time of a step has ended.
type stepTimeout struct{ limit time.Duration }

func (e *stepTimeout) Error() string {
	return "the step took longer than its timeout of " + quantity.Time(e.limit)
}

// failed makes the error of a step.  The innermost one stays.
func (r *caseRun) failed(step *compile.Step, role, action string, err error) error {
	var inner *stepError
	if errors.As(err, &inner) {
		return inner
	}
	return &stepError{span: step.Span, role: role, action: action, path: r.pathCopy(), used: r.used(), advance: r.advances.String(), err: err}
}

func (r *caseRun) pathCopy() []string { return append([]string(nil), r.path...) }
