package exec

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
	"rdmarun/rdmacore"
)

// Session is what cases of a file share that run one after another: a testbed, with fixtures of scope file.  A case
// that fails, or that leaves other than as it was what they have made, ends it, and the next one begins it anew; so
// does the last case.
type Session struct {
	// testbed is nil while there is none.
	testbed *testbed.Testbed
	kept    *testbed.Kept
	begun   []*compile.Fixture
	// failed are the fixtures that could not be set up, each with why: they are not tried again.
	failed map[*compile.Fixture]error
	// results are those that the fixtures gave names to, noting while one is set up.
	results []sharedResult
	noting  bool
	// before is what lived before the testbed, between what lives with what is kept.
	before, between rdmacore.Live
	// current is the case that runs, or ran last, which has the output.
	current atomic.Pointer[caseRun]
}

// sharedResult is a result with its name.
type sharedResult struct {
	role, name string
	index      int
	result     map[string]any
	took       timeline.Instant
}

// Open tells whether there is a testbed, which the next case takes over with its providers.
func (s *Session) Open() bool { return s != nil && s.testbed != nil }

// join gives a case the testbed of its session; nil where there is none.
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

// output takes a line for the case that runs; there is none any more when the session is closed.
func (s *Session) output(role, line string) {
	if r := s.current.Load(); r != nil {
		r.output(role, line)
	}
}

// shared sets up what the case shares with others, and is not there yet.
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
			if fresh && ctx.Err() == nil { // not for what an earlier case has done
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

// keeps tells whether what the case shares lasts beyond it.
func (r *caseRun) keeps() bool {
	s := r.config.Session
	return s != nil && !r.config.Last && r.result.Status.OK() && len(r.result.Failures) == 0 && s.kept != nil &&
		r.testbed.Intact(s.kept)
}

// end forgets what is shared, which is freed.
func (s *Session) end() {
	s.testbed, s.kept, s.begun, s.results = nil, nil, nil, nil
}

// Close ends what the last case has left to one that did not come, and returns what could not be torn down and freed.
func (s *Session) Close() []error {
	if !s.Open() {
		return nil
	}
	r := s.current.Swap(nil) // its records are complete
	r.wantSteps = false
	defer r.testbed.Clock().Leave()
	defer s.end()
	ctx, cancel := context.WithTimeoutCause(context.Background(), finallyGrace, caseTimeout(finallyGrace))
	defer cancel()
	var failures []error
	r.tearDownFixtures(ctx, s.begun, func(err error) { failures = append(failures, err) })
	failures = append(failures, s.testbed.Close()...)
	for kind, count := range r.config.Providers.Live(r.testCase.Roles) {
		if more := count - s.before[kind]; more > 0 {
			failures = append(failures, fmt.Errorf("%d %s still alive", more, kind))
		}
	}
	return failures
}
