package run

import (
	"context"

	"rdmarun/host/scenario/plan"
)

func (r *caseRun) repeat(ctx context.Context, step *plan.Step, repeat *plan.Repeat) error {
	count, err := repeat.Count.Get(r.env)
	if err != nil {
		return r.failed(step, "", "repeat", err)
	}
	restore := r.shadow(repeat.Counter)
	defer restore()
	timed := step.Label != "" && r.loops.enter(step.Label, r.tags)
	for i := range count.(int) {
		if repeat.Counter != "" {
			r.env[repeat.Counter] = i
		}
		if step.Name != nil {
			if err := r.pushName(step); err != nil {
				return err
			}
		}
		begin := r.now()
		err := r.list(ctx, repeat.Steps)
		if step.Name != nil {
			r.path = r.path[:len(r.path)-1]
		}
		if err != nil {
			if timed {
				r.loops.abandon()
			}
			return err
		}
		if timed {
			r.loops.round(r.since(begin))
		}
		if len(repeat.Steps) == 0 && ctx.Err() != nil {
			return r.failed(step, "", "repeat", context.Cause(ctx))
		}
	}
	if timed {
		r.loops.leave(r.lab.Clock().Virtual())
	}
	return nil
}
