// Package exec executes programs: it makes a testbed for each case, walks the steps, compares results with
// expectations, frees everything, and writes records of all of it.
//
// A case, in the order of its run:
//   - run.go is its frame, state.go what it knows, fixture.go sets up what it needs, session.go what cases share.
//   - step.go runs a step, block.go the steps of a step: loops, fragments, branches; time.go and pace.go have their
//     limits of time.
//   - measured.go and mesh.go take what steps have measured, threshold.go has it compared with limits.
//   - failure.go says what failed.
//
// What has a subject of its own is in packages below: skip (whether the case can run here), expect (results and
// expectations), threshold (limits), timeline (what happened when), progress (how far the run
// is, and whether it stalls).
//
// A case whose roles several processes play, each of which walks all of it (package peer has what they say):
//   - peers.go is what a run asks of them, and the answer where there are none; remote.go is the answer of several.
//     They begin together in beginning.go and end together in ending.go.
//   - task.go runs a step where its role is, and waits for one that is another's.
//   - wholeloop.go has loops of one role, divided.go steps of several roles.
//
// Of the goroutines of a case one works at a time, the one with the lock of the testbed, which it gives away while it
// waits. What runs beside them (the watch over stalls, timers, waits for other processes, streams) has locks of its
// own, and ends before the function returns that has started it; what is still to be told of steps ends with the case.
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

// Config is what a run needs.
type Config struct {
	// Providers are what the roles are on.
	Providers testbed.Providers
	// Guests starts the guests; nil when no program has guests.
	Guests testbed.GuestStarter
	Stream *record.Stream
	// Rerun is the command that runs one case again, without its parameters, seed, file and id: "rdmarun run -P verbs".
	Rerun string
	// Seed is what the provider's random numbers are drawn from; nil for the file's own, and where there is none.
	Seed *uint64
	// Baseline is what an earlier run has found of the case; nil when there is none to hold it against.
	Baseline *record.Earlier
	// TimeScale stretches limits of wall-clock time; 0 is 1.
	TimeScale float64
	// Stall replaces the time in which a step must end; 0 leaves the scenario's.
	Stall time.Duration
	// Interval is how often a measurement tells what it does; 0: when it has ended.
	Interval time.Duration
	// NoThresholds checks none.
	NoThresholds bool
	// Mailbox is that of the case, with the processes that play the other roles; nil: all are played here.  Key is the
	// case's, in each process the same; Addresses are those of roles elsewhere, where they are known better.
	Mailbox   peer.Mailbox
	Key       string
	Addresses map[string]netip.Addr
	// Others are the names of the processes that take part with this one, Player is the one that plays a role.
	Others []string
	Player func(role string) string
	// Observes is set in the process that leads the run: it plays no role, and whether the case runs the others say.
	Observes bool
	// Leader is the process that leads the run, where this one follows it; "" for none.
	Leader string
	// Clocks are the wall clocks of other processes; Modules are those of guests elsewhere, by their roles, as this
	// process calls them.
	Clocks  map[string]record.Clock
	Modules map[string]string
	// Allow is asked before each step whether this host may be used for it: for a provider by its name, NeedGuests or
	// NeedMeasure, and why, which only its error has; nil allows all.
	Allow func(what, why string) error
	// Reported waits until what other processes have reported is in the records; nil: they report nothing.
	Reported func()
	// Room takes room for bytes of what another process has measured, of all cases together; nil: there is room.
	Room func(process string, bytes int) bool
	// Session is what the case shares with those that run before and after it; nil: it has all fixtures for itself.
	// Last is set if none comes after it.
	Session *Session
	Last    bool
	// TakesOver is set where cases before it have begun the session, and Shuffle is what the order of all was drawn
	// from.
	TakesOver bool
	Shuffle   *uint64
	// Stop ends the case in the others, when it has failed and they are still in it; nil: they go on until they notice.
	Stop func()
}

// What steps need of a host beside providers.
const (
	NeedGuests  = "guests"
	NeedMeasure = "measure"
)

// allowed asks whether this host may be used for a step: of that role, if it has one, and with that verb.  It is asked
// when the step runs, whatever was looked at before.
func (r *caseRun) allowed(role *testbed.Role, does *verb.Verb) error {
	if r.config.Allow == nil {
		return nil
	}
	var failed error
	need := func(needs bool, what, format, of string) {
		if needs && failed == nil && r.config.Allow(what, "") != nil { // a reason costs more than most steps
			failed = r.config.Allow(what, fmt.Sprintf(format, of))
		}
	}
	if role != nil {
		need(true, role.Provider().Name(), "role %s is on it", role.Name)
		need(role.Guest() != nil, NeedGuests, "role %s is one", role.Name)
	}
	if need(does.Measures, NeedMeasure, "the step is a %s", does.Name); failed != nil {
		return &testbed.EnvironmentError{What: does.Name, Err: failed}
	}
	return nil
}

// led tells whether a process leads the run, this one or another: then processes have the names of their hosts.
func (c *Config) led() bool { return c.Observes || c.Leader != "" }

// finallyGrace is how long the steps of `finally` and the freeing may take once the case is over.
const finallyGrace = 10 * time.Second

// Case runs one case and writes its records.  ctx ends the whole run: its steps stop, `finally` still runs
// and everything is freed.
func Case(ctx context.Context, config Config, program *compile.Program, c *compile.Case) record.Result {
	r := &caseRun{
		config: config, program: program, testCase: c, begin: time.Now(), ended: new(atomic.Int64),
		away: new(atomic.Int64), advances: new(progress.Steps), tallies: new(record.Tallies),
	}
	r.result = record.Result{Name: c.Name, Status: record.Passed}
	r.peers, r.roster = local{}, newRoster()
	if config.Mailbox != nil {
		r.peers = newRemote(&config)
	}
	together := r.peers
	if !config.Observes {
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
	config.Stream.Write(&record.Record{Kind: record.CaseEnd, File: program.File, Case: c.ID, Result: &r.result})
	return r.result
}

// End writes the record of a case that does not run.
func End(stream *record.Stream, program *compile.Program, c *compile.Case, status record.Status, reason string) {
	result := record.Result{Name: c.Name, Status: status, Reason: reason}
	stream.Write(&record.Record{Kind: record.CaseEnd, File: program.File, Case: c.ID, Result: &result})
}

// Decline is End where this process cannot run the case and others would wait for it.
func Decline(config Config, program *compile.Program, c *compile.Case, status record.Status, reason string) {
	if config.Mailbox != nil {
		// Who is gone need not hear of it.
		_ = config.Mailbox.Tell(peer.Key("begin", config.Mailbox.Name()), beginning{
			Case: config.Key, Status: status, Reason: reason,
		})
		config.Mailbox.Close()
	}
	End(config.Stream, program, c, status, reason)
}

// prepare looks whether the case can run here, and whether it is known to fail here.
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

// lookWhetherKnown looks whether the case is known to fail here.
func (r *caseRun) lookWhetherKnown() {
	holds, err := r.holds(r.testCase.XFail.When, nil)
	if err != nil {
		r.environment(fmt.Errorf("xfail: %w", err))
	} else if holds {
		r.xfail = r.testCase.XFail
	}
}

// execute does it all; the result tells how it went.
func (r *caseRun) execute(ctx context.Context) {
	before, joined := r.config.Providers.Live(r.testCase.Roles), r.config.Session != nil && r.config.Session.Open()
	if !r.setUp(ctx) {
		return
	}
	defer r.carryStreams()() // until the guests have ended
	// This goroutine acts for all roles that steps drive, until all is freed: a virtual clock moves while it waits.
	// Between cases that share the testbed it goes on acting.
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
		r.leftovers()
		r.peers.settle(steps, r)
		r.thresholds(steps, r.testbed.Clock().Now()-begin)
	case ctx.Err() != nil:
		r.stopped(ctx, err)
	default:
		r.failedGuests()
		r.fail(err)
	}
	r.finally(ctx)
}

// finally runs the steps that follow in any case, and ends the fixtures.  Each is tried, whatever became of the one
// before.
func (r *caseRun) finally(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), finallyGrace, caseTimeout(finallyGrace))
	defer cancel()
	failed := r.result.Status != record.Passed && !r.result.FailedByThreshold()
	// Each for itself, as nobody can say whether the others still wait.
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

// seed is what the random numbers of a case are drawn from; 0 where there is none.
func (r *caseRun) seed() uint64 {
	if r.config.Seed != nil {
		return *r.config.Seed
	}
	return r.program.Soft.Seed
}

// setUp makes the testbed and the names of expressions.
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

// newTestbed is the testbed of the session, or one that is made.
func (r *caseRun) newTestbed() (*testbed.Testbed, error) {
	s := r.config.Session
	if shared := s.join(r); shared != nil {
		return shared, nil
	}
	output := r.output
	if s != nil {
		output, s.before = s.output, r.config.Providers.Live(r.testCase.Roles)
	}
	made, err := testbed.New(testbed.Config{
		Providers: r.config.Providers, Roles: r.testCase.Roles, Guests: r.config.Guests, Output: output,
		Seed: r.seed(),
	})
	return made, err
}

// tearDown frees the testbed, or of one that is kept what the case has made, and compares what lives with what lived
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
	for kind, count := range r.config.Providers.Live(r.testCase.Roles) {
		if more := count - before[kind]; more > 0 && !(r.kept && s.kept.Guests()) {
			details = append(details, fmt.Sprintf("%d %s still alive", more, kind))
		}
	}
	if r.kept && len(details) > 0 {
		for _, err := range s.Close() {
			details = append(details, err.Error())
		}
	}
	r.result.Faults, r.result.Known = r.testbed.Faults(), r.tallies.Known // all faults are healed now
	if len(details) > 0 {
		r.addFailure(record.Failure{Kind: "leak", What: "not everything could be freed", Details: details})
	}
}
