package exec

import (
	"context"
	"fmt"
	"slices"

	"rdmarun/host/scenario/compile"
)

// fixtureError is the failure of a step of a fixture.  It is an error of the case, which tests something else.
type fixtureError struct {
	name string
	// undone is the operation that failed: the fixture was not "set up", or not "torn down".
	undone string
	err    error
}

func (e *fixtureError) Error() string { return e.what(e.err.Error()) }

func (e *fixtureError) Unwrap() error { return e.err }

// what is the failure of the step, after the fixture's name.
func (e *fixtureError) what(ofStep string) string {
	return fmt.Sprintf("the fixture %s could not be %s: %s", e.name, e.undone, ofStep)
}

// fixtures sets up the fixtures of the case, shared ones first.  Guests that run then belong to the fixtures, and no
// step of the case has to end them.
func (r *caseRun) fixtures(ctx context.Context) error {
	share := r.config.Session != nil
	if share {
		if err := r.shared(ctx); err != nil {
			return err
		}
	}
	for _, fixture := range r.testCase.Fixtures {
		if share && fixture.Shared {
			continue
		}
		r.begun = append(r.begun, fixture)
		if err := r.list(ctx, fixture.Setup); err != nil {
			return &fixtureError{fixture.Name, "set up", err}
		}
	}
	r.testbed.KeepExecutables()
	return nil
}

// tearDownFixtures tears down the fixtures that have begun their setup, the last first.  It tries each step, also after
// a failure; failed takes their errors.
func (r *caseRun) tearDownFixtures(ctx context.Context, begun []*compile.Fixture, failed func(error)) {
	for _, fixture := range slices.Backward(begun) {
		r.each(ctx, fixture.Teardown, func(err error) { failed(&fixtureError{fixture.Name, "torn down", err}) })
	}
}

// each tries all steps, also after a failure; failed takes their errors.
func (r *caseRun) each(ctx context.Context, steps []*compile.Step, failed func(error)) {
	for _, step := range steps {
		if err := r.step(ctx, step); err != nil {
			failed(err)
		}
	}
}
