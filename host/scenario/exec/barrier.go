package exec

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// barrier waits until everyone is there.
func (r *caseRun) barrier(ctx context.Context, step *compile.Step, action *compile.Barrier) error {
	r.count()
	name, err := action.Name.Get(r.env)
	if err != nil {
		return r.failed(step, "", "barrier", err)
	}
	values, err := r.evaluate(action.Roles)
	if err != nil {
		return r.failed(step, "", "barrier", err)
	}
	gathering := testbed.Gathering{Name: name.(string), Own: action.Own, Others: action.Others}
	for _, value := range values {
		gathering.Roles = append(gathering.Roles, value.(string))
	}
	within, err := r.within(action.Within, verb.DefaultWithin)
	if err != nil {
		return r.failed(step, "", "barrier", err)
	}
	waiting, cancel := r.lab.Clock().WithTimeout(ctx, within)
	defer cancel()
	begin := r.now()
	err = r.lab.Barrier(waiting, gathering)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	m := moment{at: begin, step: step, text: fmt.Sprintf("barrier %s", name), err: err}
	r.history.add(m)
	if r.wantSteps {
		r.writeStep(r.stepRecord(m, r.since(begin)))
	}
	if err != nil {
		return r.failed(step, "", "barrier", err)
	}
	return nil
}
