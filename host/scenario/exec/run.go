// Package exec executes scenarios. It makes a testbed for each case, runs the steps, compares results with
// expectations, frees everything, and writes records.
//
// The files of a case, in the order of its run:
//   - run.go is its frame, state.go its state, fixture.go sets up fixtures, session.go shares them between cases.
//   - step.go runs a step, block.go the steps of a step: loops, fragments, branches; time.go has their time
//     limits and rates.
//   - measured.go and mesh.go take the results of measurements, threshold.go has them compared with limits.
//   - failure.go makes the records of failures.
//
// Subjects of their own are in packages. They are skip (whether the case can run here), expect (results and
// expectations) and threshold (limits). Also timeline (what happened when) and progress (how far the run is, and
// whether it stalls).
//
// Several processes may play the roles of a case.  Each of them walks all its steps (package peer has their messages):
//   - peers.go is the interface to them, and its implementation for a single process; remote.go is the one for several.
//     They begin together in beginning.go and end together in ending.go.
//   - task.go runs a step in the process of its role, and waits for one of another process.
//   - wholeloop.go has loops of one role, divided.go steps of several roles.
//
// One goroutine of a case works at a time: the one with the lock of the testbed, which it releases while it waits.
// Other goroutines (the watch for stalls, timers, waits for other processes, streams) have their own locks.  They end
// before the function that has started them returns.
package exec

import (
	"context"
	"fmt"
	"net/netip"
	"sync/atomic"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/progress"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/skip"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// Config is the configuration of a run.
type Config struct {
	// Providers are the providers of the roles.
	Providers testbed.Providers
	// Guests starts the guests; nil when no program has guests.
	Guests testbed.GuestStarter
	// Programs are settings of native programs.
	Programs testbed.ProgramSettings
	Stream   *record.Stream
	// Rerun is the command that runs the case again; "" without one.
	Rerun string
	// Seed replaces the file's seed of the provider's random numbers; nil keeps it.
	Seed *uint64
	// Baseline has the results of the case in an earlier run, for comparison; nil without one.
	Baseline *record.Earlier
	// TimeScale stretches limits of wall-clock time; 0 is 1.
	TimeScale float64
	// Stall replaces the time in which a step must end; 0 leaves the scenario's.
	Stall time.Duration
	// Interval is the interval of the figures of a running measurement; 0: only the results at its end.
	Interval time.Duration
	// NoThresholds leaves out thresholds.
	NoThresholds bool
	// Mailbox is the mailbox of the case, with the processes of the other roles; nil: all roles are played here.  Key
	// is the key of the case, equal in all processes; Addresses are the known addresses of roles of other processes.
	Mailbox   peer.Mailbox
	Key       string
	Addresses map[string]netip.Addr
	// Others are the names of the other processes of the case; Player returns the process of a role.
	Others []string
	Player func(role string) string
	// IsController is set in the controller: it plays no role, and the other processes decide whether the case runs.
	IsController bool
	// Controller is the name of the controller in the other processes; "" for a run without one.
	Controller string
	// Clocks are the wall clocks of other processes; Modules are the files of guests in other processes, by role, as
	// this process names them.
	Clocks  map[string]record.Clock
	Modules map[string]string
	// Allow checks before each step whether this host may be used for it. It gets a provider's name, NeedGuests or
	// NeedMeasure, and the reason, which only the error contains. nil allows all.
	Allow func(what, why string) error
	// Reported waits until the reports of other processes are in the records; nil without reports.
	Reported func()
	// Reserve reserves bytes for results of another process, for all cases together; nil: without limit.
	Reserve func(process string, bytes int) bool
	// Session is shared with the cases before and after this one; nil: the case has its own fixtures.  Last is set for
	// the last case of the session.
	Session *Session
	Last    bool
	// Stop ends a failed case in the other processes; nil: they continue until their steps end.
	Stop func()
}

// The requirements of steps for a host, other than providers.
const (
	NeedGuests  = "guests"
	NeedProgram = "program"
	NeedMeasure = "measure"
)

// allowed checks whether this host may be used for a step: of that role, if it has one, and with that verb.  The check
// is made when the step runs, in addition to earlier ones.
func (r *caseRun) allowed(role *testbed.Role, does *verb.Verb) error {
	if r.config.Allow == nil {
		return nil
	}
	var failed error
	need := func(needs bool, what, format, of string) {
		if needs && failed == nil && r.config.Allow(what, "") != nil { // making a reason costs more than most steps
			failed = r.config.Allow(what, fmt.Sprintf(format, of))
		}
	}
	if role != nil {
		need(true, role.Provider().Name(), "role %s is on it", role.Name)
		need(role.Guest() != nil, NeedGuests, "role %s is one", role.Name)
		need(role.Program() != nil, NeedProgram, "role %s is one", role.Name)
	}
	if need(does.Measures, NeedMeasure, "the step is a %s", does.Name); failed != nil {
		return &testbed.EnvironmentError{What: does.Name, Err: failed}
	}
	return nil
}

// hasController reports whether the run has a controller; its processes have the names of their hosts.
func (c *Config) hasController() bool { return c.IsController || c.Controller != "" }

// finallyGrace is how long the steps of `finally` and the freeing may take once the case is over.
const finallyGrace = 10 * time.Second

// Case runs one case and writes its records.  When ctx ends, the steps stop; `finally` still runs and everything is
// freed.
func Case(ctx context.Context, config Config, scenario *compile.Scenario, c *compile.Case) record.Result {
	r := &caseRun{
		config: config, scenario: scenario, testCase: c, begin: time.Now(), ended: new(atomic.Int64),
		away: new(atomic.Int64), progress: new(progress.Steps), tallies: new(record.Tallies),
	}
	r.result = record.Result{Name: c.Name, Status: record.Passed}
	r.peers, r.roster = local{}, newRoster()
	if config.Mailbox != nil {
		r.peers = newRemote(&config)
	}
	together := r.peers
	if !config.IsController {
		r.prepare()
	}
	if r.result.Status == record.Passed {
		r.execute(ctx)
	} else {
		together.begin(ctx, r)
	}
	together.end(ctx, r)
	r.expectFailure()
	r.result.Took = time.Since(r.begin)
	r.result.Steps = r.steps
	r.result.Loops = r.loops.Records()
	for i := range r.result.Counters {
		r.result.Counters[i].Meaning = explain.Counter(r.result.Counters[i].Name)
	}
	if config.Reported != nil {
		config.Reported()
	}
	r.write(record.Record{Kind: record.CaseEnd, Result: &r.result})
	return r.result
}

// End writes the record of a case that does not run.
func End(stream *record.Stream, scenario *compile.Scenario, c *compile.Case, status record.Status, reason string) {
	result := record.Result{Name: c.Name, Status: status, Reason: reason}
	stream.Write(&record.Record{Kind: record.CaseEnd, File: scenario.File, Case: c.ID, Result: &result})
}

// Decline is End for a case that other processes would wait for.
func Decline(config Config, scenario *compile.Scenario, c *compile.Case, status record.Status, reason string) {
	if config.Mailbox != nil {
		// A process that is gone needs no message.
		_ = config.Mailbox.Broadcast(peer.Key("begin", config.Mailbox.Name()), beginning{
			Case: config.Key, Status: status, Reason: reason,
		})
		config.Mailbox.Close()
	}
	End(config.Stream, scenario, c, status, reason)
}

// prepare checks whether the case can run here, and whether it is known to fail here.
func (r *caseRun) prepare() {
	reason, err := skip.Reason(r.config.Providers, r.testCase)
	switch {
	case err != nil:
		r.environment(err)
	case reason != "":
		r.result.Status, r.result.Reason = record.Skipped, reason
	case r.testCase.XFail != nil && !r.testCase.XFail.When.Mentions(skip.Elsewhere(r.testCase)...):
		r.lookWhetherKnown()
	}
}

// lookWhetherKnown checks whether the case is known to fail here.
func (r *caseRun) lookWhetherKnown() {
	holds, err := r.holds(r.testCase.XFail.When, nil)
	if err != nil {
		r.environment(fmt.Errorf("xfail: %w", err))
	} else if holds {
		r.xfail = r.testCase.XFail
	}
}

// execute runs the case; the result has its status.
func (r *caseRun) execute(ctx context.Context) {
	before, joined := r.config.Providers.Live(r.testCase.Roles), r.config.Session != nil && r.config.Session.Open()
	if !r.setUp(ctx) {
		return
	}
	defer r.carryStreams()() // until the guests have ended
	// This goroutine acts for all roles that steps drive, until all is freed: a virtual clock moves while it waits.
	// Between cases that share the testbed it continues to act.
	if !joined {
		r.testbed.Clock().Enter()
	}
	defer r.tearDown(before)
	defer r.recoverPanic()

	limit := r.config.stretched(r.testCase.Timeout)
	steps, cancel := context.WithTimeoutCause(ctx, limit, caseTimeout(limit))
	defer cancel()
	stall := r.stall()
	steps, relax := progress.Watch(steps, stall, r.ended, r.away, &overtime{
		text: "no step has ended for " + quantity.Time(stall) + " (stall_timeout)",
	})
	defer relax()
	err := r.fixtures(steps)
	begin := r.testbed.Clock().Now()
	if err == nil {
		err = r.list(steps, r.testCase.Setup)
	}
	if err == nil {
		err = r.list(steps, r.testCase.Steps)
	}
	switch {
	case err == nil:
		r.failedExecutables(false, nil)
		r.leftovers()
		r.peers.awaitChecks(steps, r)
		r.thresholds(steps, r.testbed.Clock().Now()-begin)
	case ctx.Err() != nil:
		r.failedExecutables(true, err)
		r.stopped(ctx, err)
	default:
		r.failedExecutables(false, err)
		r.fail(err)
		r.thresholdsOfTooFew()
	}
	r.finally(ctx)
}

// finally runs the steps of `finally` and tears down the fixtures.  It tries each, also after a failure.
func (r *caseRun) finally(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), finallyGrace, caseTimeout(finallyGrace))
	defer cancel()
	failed := r.result.Status != record.Passed && !r.result.FailedByThreshold()
	// Each process works alone: it cannot know whether the others still wait.
	r.peers = local{apart: r.config.Mailbox != nil}
	note := func(err error) {
		if !failed {
			r.fail(err)
		}
	}
	r.each(ctx, r.testCase.Finally, note)
	r.tearDownFixtures(ctx, r.begun, note)
	if r.kept = r.keeps(); !r.kept && r.config.Session != nil {
		r.tearDownFixtures(ctx, r.config.Session.begun, note)
	}
}

// setUp makes the testbed and the variables of expressions.
func (r *caseRun) setUp(ctx context.Context) bool {
	made, err := r.newTestbed()
	if err == nil {
		r.testbed = made
		if err = r.environmentNames(); err != nil {
			made.Close()
			r.testbed = nil
			if s := r.config.Session; s != nil && s.Open() {
				made.Clock().Leave()
				s.end()
			}
		}
	}
	if err != nil {
		r.environment(err)
	}
	if !r.peers.begin(ctx, r) && err == nil {
		made.Close()
	}
	if r.result.Status != record.Passed {
		return false
	}
	r.writeStart()
	return true
}

// newTestbed returns the testbed of the session, or a new one.
func (r *caseRun) newTestbed() (*testbed.Testbed, error) {
	s := r.config.Session
	if shared := s.join(r); shared != nil {
		return shared, nil
	}
	output, seed := r.output, r.scenario.Soft.Seed
	if r.config.Seed != nil {
		seed = *r.config.Seed
	}
	if s != nil {
		output, s.before = s.output, r.config.Providers.Live(r.testCase.Roles)
	}
	return testbed.New(testbed.Config{
		Providers: r.config.Providers, Roles: r.testCase.Roles, Guests: r.config.Guests, Programs: r.config.Programs,
		Output: output, Seed: seed,
	})
}

// alive lists the live objects that were not there before.
func (r *caseRun) alive(before rdmacore.Live) (list []string) {
	for kind, count := range r.config.Providers.Live(r.testCase.Roles) {
		if more := count - before[kind]; more > 0 {
			list = append(list, fmt.Sprintf("%d %s still alive", more, kind))
		}
	}
	return list
}

// tearDown frees the testbed, or in a shared one the objects of the case, and compares the live objects with those
// before.
func (r *caseRun) tearDown(before rdmacore.Live) {
	r.result.Traffic, r.result.Counters = r.testbed.Traffic(), r.testbed.Counters(r.hostOf)
	var failures []error
	s := r.config.Session
	switch {
	case r.kept:
		failures, before = r.testbed.Release(s.kept), s.between
		s.testbed = r.testbed
	case s != nil:
		before = s.before
		s.end()
		fallthrough
	default:
		failures = r.testbed.Close()
		r.testbed.Clock().Leave()
	}
	var details []string
	for _, err := range failures {
		details = append(details, err.Error())
	}
	if !r.kept || !s.kept.Executables() {
		details = append(details, r.alive(before)...)
	}
	if r.kept && len(details) > 0 {
		for _, err := range s.Close() {
			details = append(details, err.Error())
		}
	}
	r.result.Faults, r.result.Known = r.testbed.Faults(), r.tallies.Known // all faults are removed now
	if len(details) > 0 {
		r.addFailure(record.Failure{Kind: record.KindLeak, What: "not everything could be freed", Details: details})
	}
}
