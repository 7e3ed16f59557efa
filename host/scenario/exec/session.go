package exec

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
	"rdmarun/rdmacore"
)

// Session is the testbed, with fixtures of scope file or run, that cases share one after another.  It ends when a case
// fails or changes what the fixtures have made, and the next case begins a new one.  It also ends with the last case.
type Session struct {
	// testbed is nil when there is none.
	testbed *testbed.Testbed
	kept    *testbed.Kept
	begun   []*compile.Fixture
	// failed has the fixtures that could not be set up, with the errors.  They are not tried again.
	failed map[*compile.Fixture]error
	// results are the named results of the fixtures; noting is set during a setup.
	results []sharedResult
	noting  bool
	// before counts the live objects before the testbed, between those with the kept ones.
	before, between rdmacore.Live
	// current is the case that runs, or ran last; it gets the output.
	current atomic.Pointer[caseRun]
}

// sharedResult is a result with its name.
type sharedResult struct {
	role, name string
	index      int
	result     map[string]any
	took       timeline.Instant
}

// Open reports whether there is a testbed, which the next case takes over with its providers.
func (s *Session) Open() bool { return s != nil && s.testbed != nil }

// join returns the testbed of the session for a case; nil without one.
func (s *Session) join(r *caseRun) *testbed.Testbed {
	if s == nil {
		return nil
	}
	s.current.Store(r)
	if s.testbed != nil {
		s.testbed.Resume(s.kept)
	}
	return s.testbed
}

// output passes a line to the current case; after Close there is none.
func (s *Session) output(role, line string, at time.Time) {
	if r := s.current.Load(); r != nil {
		r.output(role, line, at)
	}
}

// shared sets up the shared fixtures that are not set up yet.
func (r *caseRun) shared(ctx context.Context) error {
	s := r.config.Session
	for _, each := range s.results {
		r.bind(each.role, each.name, each.index, each.result, each.took)
	}
	fresh := s.kept == nil
	s.noting = true
	defer func() { s.noting = false }()
	for _, fixture := range r.testCase.Fixtures {
		if !fixture.Shared || slices.Contains(s.begun, fixture) {
			continue
		}
		err := s.failed[fixture]
		if err == nil {
			s.begun = append(s.begun, fixture)
			err = r.list(ctx, fixture.Setup)
		}
		if err != nil {
			if fresh && ctx.Err() == nil { // an earlier case is not the cause
				if s.failed == nil {
					s.failed = make(map[*compile.Fixture]error)
				}
				s.failed[fixture] = err
			}
			return &fixtureError{fixture.Name, "set up", err}
		}
		s.kept = nil
	}
	if s.kept == nil {
		s.kept, s.between = r.testbed.Keep(), r.config.Providers.Live(r.testCase.Roles)
	}
	return nil
}

// keeps reports whether the shared testbed is kept after the case.
func (r *caseRun) keeps() bool {
	s := r.config.Session
	return s != nil && !r.config.Last && r.result.Status.OK() && len(r.result.Failures) == 0 && s.kept != nil &&
		r.testbed.Intact(s.kept)
}

// end drops the shared testbed, which is freed.
func (s *Session) end() {
	s.testbed, s.kept, s.begun, s.results = nil, nil, nil, nil
}

// Close ends a session after a last case that did not run.  It returns the errors of tearing down and freeing.
func (s *Session) Close() []error {
	if !s.Open() {
		return nil
	}
	r := s.current.Swap(nil) // the records of that case are complete
	r.wantSteps = false
	defer r.testbed.Clock().Leave()
	defer s.end()
	ctx, cancel := context.WithTimeoutCause(context.Background(), finallyGrace, caseTimeout(finallyGrace))
	defer cancel()
	var failures []error
	r.tearDownFixtures(ctx, s.begun, func(err error) { failures = append(failures, err) })
	failures = append(failures, s.testbed.Close()...)
	for _, each := range r.alive(s.before) {
		failures = append(failures, errors.New(each))
	}
	return failures
}
