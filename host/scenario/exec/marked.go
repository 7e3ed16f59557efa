package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
)

// marked runs a step that has tags or is known to fail.
func (r *caseRun) marked(ctx context.Context, step *compile.Step) error {
	before := r.tags
	defer func() { r.tags = before }()
	tags := make(map[string]string, len(before)+len(step.Tags))
	maps.Copy(tags, before)
	for _, tag := range step.Tags {
		tags[tag.Name] = ""
		if tag.Value == nil {
			continue
		}
		value, err := tag.Value.Get(r.env)
		if err != nil {
			return r.failed(step, "", "tags", err)
		}
		tags[tag.Name] = value.(string)
	}
	r.tags = tags
	if step.XFail == nil {
		return r.timed(ctx, step)
	}
	return r.expectedToFail(ctx, step)
}

// expectedToFail runs a step that is known to fail: its failure is expected, its success is not.  Only what
// a test is for is excused: no end of the case's time, no missing device, no value that cannot be computed.
func (r *caseRun) expectedToFail(ctx context.Context, step *compile.Step) error {
	holds, err := r.holds(step.XFail.When)
	if err != nil {
		return r.failed(step, "", "xfail", err)
	}
	if !holds {
		return r.timed(ctx, step)
	}
	before, reason := r.known, step.XFail.Reason
	r.known = reason
	depth := len(r.path)
	err = r.timed(ctx, step)
	r.known, r.path = before, r.path[:depth]
	var failure *testbed.Failure
	var limit *stepTimeout
	switch {
	case err == nil:
		return r.failed(step, "", "xfail", &testbed.Failure{
			What: "it passed, and xfail says that it fails", Hint: "take the xfail away: " + reason,
		})
	case ctx.Err() == nil && (errors.As(err, &failure) || errors.As(err, &limit)):
		return r.excused(step.XFail, err)
	}
	return err
}

// excused is nil for the failure that an xfail expects; any other says what is expected.
func (r *caseRun) excused(known *compile.XFail, err error) error {
	if known.Raises == nil {
		return nil
	}
	f := r.describe(err)
	unlike := known.Unlike(compile.FailureFields{Action: f.Action, What: f.What, Got: f.Got})
	if unlike == "" {
		return nil
	}
	var step *stepError
	if errors.As(err, &step) {
		step.known = notExpected(known, unlike)
	}
	return err
}

// notExpected is the hint of a failure that is not the one an xfail expects.
func notExpected(known *compile.XFail, unlike string) string {
	return "xfail expects another failure (" + unlike + "): " + known.Reason
}

// holds tells whether a condition on the surroundings holds; without one it does.
func (r *caseRun) holds(when *compile.Requirement) (bool, error) {
	if when == nil {
		return true, nil
	}
	env, err := surroundings(r.config.Provider, r.testCase)
	if err != nil {
		return false, fmt.Errorf("look at the surroundings: %w", err)
	}
	for name, value := range r.env {
		if _, taken := env[name]; !taken {
			env[name] = value // a fragment's parameter, the value of a for_each
		}
	}
	return when.Holds(env)
}
