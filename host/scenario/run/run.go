package run

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"rdmarun/host/scenario/lab"
	"rdmarun/host/scenario/plan"
	"rdmarun/host/scenario/record"
	"rdmarun/rdmacore"
)

// Config is what a run needs.
type Config struct {
	Provider *rdmacore.Provider
	// Guests makes what starts guests, on first use; nil when no program has guests.
	Guests func() (lab.GuestStarter, error)
	Stream *record.Stream
	// Rerun is the command that runs one case again, without file and case: "rdmarun run -p count=3".
	Rerun string
	// Baseline is what an earlier run has found of the case; nil when there is none to hold it against.
	Baseline *record.Earlier
	// TimeScale stretches limits of the wall's time; 0 is 1.
	TimeScale float64
	// Stall replaces the time in which a step must end; 0 leaves the scenario's.
	Stall time.Duration
	// NoThresholds checks none.
	NoThresholds bool
}

// finallyGrace is how long the steps of `finally` and the freeing may take once the case is over.
const finallyGrace = 10 * time.Second

// Case runs one case and writes its records.  ctx ends the whole run: its steps stop, `finally` still runs
// and everything is freed.
func Case(ctx context.Context, config Config, program *plan.Program, c *plan.Case) record.Result {
	r := &caseRun{config: config, program: program, testCase: c, begin: time.Now(), ended: new(atomic.Int64)}
	r.result = record.Result{Name: c.Name, Status: record.Passed}
	known := r.prepare()
	if r.result.Status == record.Passed {
		r.execute(ctx)
	}
	r.expectFailure(known)
	r.result.Took = time.Since(r.begin)
	r.result.Steps = r.steps
	r.result.Loops = r.loops.list()
	config.Stream.Write(&record.Record{Kind: record.CaseEnd, File: program.File, Case: c.ID, Result: &r.result})
	return r.result
}

// Skip writes the records of a case that cannot run.
func Skip(config Config, program *plan.Program, c *plan.Case, reason string) record.Result {
	result := record.Result{Name: c.Name, Status: record.Skipped, Reason: reason}
	config.Stream.Write(&record.Record{Kind: record.CaseEnd, File: program.File, Case: c.ID, Result: &result})
	return result
}

// prepare looks whether the case can run here, and whether it is known to fail here.
func (r *caseRun) prepare() (known *plan.XFail) {
	c := r.testCase
	if len(c.Needs)+len(c.Requires) == 0 && c.XFail == nil {
		return nil
	}
	env, err := surroundings(r.config.Provider, c)
	if err != nil {
		r.environment(err)
		return nil
	}
	reason, err := unmet(r.config.Provider, c, env)
	switch {
	case err != nil:
		r.environment(err)
	case reason != "":
		r.result.Status, r.result.Reason = record.Skipped, reason
	case c.XFail == nil:
	case c.XFail.When == nil:
		return c.XFail
	default:
		holds, err := c.XFail.When.Holds(env)
		if err != nil {
			r.environment(fmt.Errorf("xfail: %w", err))
		} else if holds {
			return c.XFail
		}
	}
	return nil
}

// expectFailure turns the result of a case that is known to fail: its failure is expected, and its success
// is not.
func (r *caseRun) expectFailure(known *plan.XFail) {
	if known == nil {
		return
	}
	switch r.result.Status {
	case record.Failed:
		if !r.leaked() {
			r.result.Status, r.result.Reason = record.XFailed, known.Reason
		}
	case record.Passed:
		r.addFailure(record.Failure{
			Kind: "xpass", File: r.program.File, What: "it passed, and xfail says that it fails",
			Hint: "take the xfail away: " + known.Reason, Rerun: r.rerun(),
		})
	}
}

// leaked tells whether something could not be freed, which no xfail excuses.
func (r *caseRun) leaked() bool {
	return slices.ContainsFunc(r.result.Failures, func(f record.Failure) bool { return f.Kind == "leak" })
}

// execute does it all; the result tells how it went.
func (r *caseRun) execute(ctx context.Context) {
	before := r.config.Provider.Live()
	if !r.setUp() {
		return
	}
	defer r.tearDown(before)
	defer r.recoverPanic()
	// This goroutine acts for all roles that steps drive: a virtual clock moves while it waits.
	r.lab.Clock().Enter()
	defer r.lab.Clock().Leave()

	limit := r.config.stretched(r.testCase.Timeout)
	steps, cancel := context.WithTimeoutCause(ctx, limit, &caseTimeout{limit})
	defer cancel()
	steps, relax := watch(steps, r.stall(), r.ended)
	defer relax()
	begin := r.lab.Clock().Now()
	err := r.list(steps, r.testCase.Setup)
	if err == nil {
		err = r.list(steps, r.testCase.Steps)
	}
	switch {
	case err == nil:
		r.leftovers()
		r.thresholds(r.lab.Clock().Now() - begin)
	case ctx.Err() != nil:
		r.stopped(ctx)
	default:
		r.fail(err)
	}
	r.finally(ctx)
}

// stopped notes that the run was ended from outside.
func (r *caseRun) stopped(ctx context.Context) {
	r.result.Status = record.Interrupted
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		r.result.Status = record.TimedOut
	}
	r.result.Reason = context.Cause(ctx).Error()
}

// finally runs the steps that follow in any case.  Each is tried, whatever became of the one before.
func (r *caseRun) finally(ctx context.Context) {
	if len(r.testCase.Finally) == 0 {
		return
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), finallyGrace, &caseTimeout{finallyGrace})
	defer cancel()
	failed := r.result.Status != record.Passed
	for _, step := range r.testCase.Finally {
		if err := r.step(ctx, step); err != nil && !failed {
			r.fail(err)
		}
	}
}

// setUp makes the lab and the names of expressions.
func (r *caseRun) setUp() bool {
	var guests lab.GuestStarter
	if r.program.Guests {
		starter, err := r.config.Guests()
		if err != nil {
			r.environment(fmt.Errorf("the guest runtime: %w", err))
			return false
		}
		guests = starter
	}
	l, err := lab.New(lab.Config{
		Provider: r.config.Provider, Roles: r.testCase.Roles, Guests: guests, Output: r.output,
	})
	if err != nil {
		r.environment(err)
		return false
	}
	r.lab = l
	if err := r.environmentNames(); err != nil {
		r.environment(err)
		l.Close()
		return false
	}
	r.writeStart()
	return true
}

// environment notes a fault of the surroundings.
func (r *caseRun) environment(err error) {
	r.result.Status, r.result.Reason = record.Errored, err.Error()
	r.result.Failures = append(r.result.Failures, record.Failure{
		Kind: "error", File: r.program.File, What: err.Error(), Rerun: r.rerun(),
	})
}

// tearDown frees the lab and compares what lives with what lived before.
func (r *caseRun) tearDown(before rdmacore.Live) {
	for _, entry := range r.lab.Traffic() {
		r.result.Traffic = append(r.result.Traffic, record.Traffic(entry))
	}
	failures := r.lab.Close()
	after := r.config.Provider.Live()
	var details []string
	for _, err := range failures {
		details = append(details, err.Error())
	}
	for kind, count := range after {
		if more := count - before[kind]; more > 0 {
			details = append(details, fmt.Sprintf("%d %s still alive", more, kind))
		}
	}
	if len(details) == 0 {
		return
	}
	r.addFailure(record.Failure{
		Kind: "leak", File: r.program.File, What: "not everything could be freed", Details: details, Rerun: r.rerun(),
	})
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
