package exec

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/compile"
)

func (r *caseRun) list(ctx context.Context, steps []*compile.Step) error {
	for _, step := range steps {
		if err := r.step(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// step runs one step with what stands beside its action.
func (r *caseRun) step(ctx context.Context, step *compile.Step) error {
	if ctx.Err() != nil {
		return r.failed(step, "", "step", context.Cause(ctx))
	}
	if step.If != nil {
		wanted, err := step.If.Get(r.env)
		if err != nil {
			return r.failed(step, "", "if", err)
		}
		if wanted == false {
			return nil
		}
	}
	if step.Tags != nil || step.XFail != nil {
		return r.marked(ctx, step)
	}
	return r.timed(ctx, step)
}

// named runs the action with the step's name on the path.
func (r *caseRun) named(ctx context.Context, step *compile.Step) error {
	if repeat, ok := step.Action.(*compile.Repeat); ok {
		return r.repeat(ctx, step, repeat) // names each round anew
	}
	if step.Name == nil {
		return r.action(ctx, step)
	}
	if err := r.pushName(step); err != nil {
		return err
	}
	err := r.action(ctx, step)
	r.path = r.path[:len(r.path)-1]
	return err
}

func (r *caseRun) pushName(step *compile.Step) error {
	name, err := step.Name.Get(r.env)
	if err != nil {
		return r.failed(step, "", "name", err)
	}
	r.path = append(r.path, name.(string))
	return nil
}

func (r *caseRun) action(ctx context.Context, step *compile.Step) error {
	switch action := step.Action.(type) {
	case *compile.Call:
		return r.call(ctx, step, action)
	case *compile.Block:
		if action.Rounds {
			return r.rounds(ctx, action.Steps)
		}
		return r.list(ctx, action.Steps)
	case *compile.Use:
		return r.use(ctx, step, action)
	case *compile.Parallel:
		return r.parallel(ctx, step, action)
	case *compile.Guest:
		return r.guest(ctx, step, action)
	case *compile.GuestCall:
		return r.guestCall(ctx, step, action)
	case *compile.Barrier:
		return r.barrier(ctx, step, action)
	}
	panic(fmt.Sprintf("no action %T", step.Action))
}
