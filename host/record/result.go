package record

import (
	"slices"
	"time"
)

// Status is how a case ended.
type Status string

// The statuses of a case.
const (
	Passed      Status = "passed"
	Failed      Status = "failed"      // an expectation did not hold, or something leaked
	Errored     Status = "error"       // the environment: no device, a provider that failed
	Skipped     Status = "skipped"     // it cannot run, and says why
	Interrupted Status = "interrupted" // a signal
	TimedOut    Status = "timed_out"   // the time of the whole run is over
	XFailed     Status = "xfailed"     // it failed, and was expected to
	Broken      Status = "bug"         // rdmarun itself failed
)

// Result is the end of a case.
type Result struct {
	Name   string        `json:"name"`
	Status Status        `json:"status"`
	Reason string        `json:"reason,omitempty"` // of a skip, an error, an interruption
	Took   time.Duration `json:"took_ns"`
	Steps  int           `json:"steps"`
	// Attempts is how often the case was tried, where that is more than once; one that passed then is flaky.
	Attempts int       `json:"attempts,omitempty"`
	Traffic  []Traffic `json:"traffic,omitempty"`
	Loops    []Loop    `json:"loops,omitempty"`
	// Failures are what went wrong: the first of the steps, then of `finally`, leftovers, leaks.
	Failures []Failure `json:"failures,omitempty"`
}

// FlakyReason is the reason of a case that passed, but not at the first attempt.
const FlakyReason = "passed on a retry"

// Flaky tells whether a case passed, but not at the first attempt.
func (r *Result) Flaky() bool { return r.Status == Passed && r.Reason == FlakyReason }

// FailedByThreshold tells whether every expectation held, and only limits on what was measured did not.
func (r *Result) FailedByThreshold() bool {
	return r.Status == Failed && len(r.Failures) > 0 &&
		!slices.ContainsFunc(r.Failures, func(f Failure) bool { return f.Kind != KindThreshold })
}

// KindThreshold is the kind of the failure of a threshold.
const KindThreshold = "threshold"

// Traffic is how much of one operation was posted.
type Traffic struct {
	Operation string `json:"operation"`
	Count     int    `json:"count"`
	Bytes     int64  `json:"bytes"`
}

// Failure is one thing that went wrong, complete enough to be read on its own.
type Failure struct {
	// Kind is expectation, leftover, leak, threshold, skipped, xpass, stopped, error or bug.
	Kind     string   `json:"kind"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`
	Column   int      `json:"column,omitempty"`
	Excerpt  []string `json:"excerpt,omitempty"` // the source line and the line with the caret
	Role     string   `json:"role,omitempty"`
	Action   string   `json:"action,omitempty"`
	What     string   `json:"what"`
	Expected string   `json:"expected,omitempty"`
	Got      string   `json:"got,omitempty"`
	Hint     string   `json:"hint,omitempty"`
	Details  []string `json:"details,omitempty"` // leftovers, what leaked, guests that still ran
	Timeline []Moment `json:"timeline,omitempty"`
	Path     []string `json:"path,omitempty"` // names of the steps around, "ping 3"
	// Used are the steps that used the fragments it stands in, the innermost first: "FILE:LINE (FRAGMENT)".
	Used  []string `json:"used,omitempty"`
	Rerun string   `json:"rerun,omitempty"`
}

// Moment is one step in a timeline.
type Moment struct {
	At time.Duration `json:"at_ns"` // since the case began, on the wall's clock
	// Clock is the same on the provider's clock, where that is a virtual one.
	Clock *time.Duration `json:"clock_ns,omitempty"`
	Role  string         `json:"role"`
	Text  string         `json:"text"`
	File  string         `json:"file"`
	Line  int            `json:"line"`
}

// OnClock is when it began on the provider's clock.
func (m *Moment) OnClock() time.Duration {
	if m.Clock != nil {
		return *m.Clock
	}
	return m.At
}

// Totals is the end of a run.
type Totals struct {
	Took        time.Duration `json:"took_ns"`
	Passed      int           `json:"passed"`
	Failed      int           `json:"failed"`
	ByThreshold int           `json:"failed_by_threshold,omitempty"` // of those that failed, by nothing else
	Errors      int           `json:"errors"`
	Skipped     int           `json:"skipped"`
	Flaky       int           `json:"flaky,omitempty"` // of those that passed, after a retry
	NotRun      int           `json:"not_run"`
	XFailed     int           `json:"xfailed,omitempty"`
	Thresholds  int           `json:"thresholds,omitempty"` // that did not hold
	Interrupted bool          `json:"interrupted,omitempty"`
	TimedOut    bool          `json:"timed_out,omitempty"`
	Bug         bool          `json:"bug,omitempty"`
}

// Count adds a case that has ended.
func (t *Totals) Count(result *Result) {
	switch result.Status {
	case Passed:
		t.Passed++
		if result.Flaky() {
			t.Flaky++
		}
	case Skipped:
		t.Skipped++
	case XFailed:
		t.XFailed++
	case Errored:
		t.Errors++
	case Broken:
		t.Failed++
		t.Bug = true
	default:
		t.Failed++
		if result.FailedByThreshold() {
			t.ByThreshold++
		}
	}
}

// OK tells that a status is no failure: the case passed, was skipped, or failed as its xfail says.
func (s Status) OK() bool { return s == Passed || s == XFailed || s == Skipped }
