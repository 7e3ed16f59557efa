package exec

import (
	"context"

	"rdmarun/host/scenario/compile"
)

func (r *caseRun) repeat(ctx context.Context, step *compile.Step, repeat *compile.Repeat) error {
	count, err := repeat.Count.Get(r.env)
	if err != nil {
		return r.failed(step, "", "repeat", err)
	}
	restore := r.shadow(repeat.Counter)
	defer restore()
	timed := step.Label != "" && r.loops.enter(step.Label, r.tags)
	advance := r.advances.begin(roundsOf(step), count.(int))
	defer r.advances.end(advance)
	for i := range count.(int) {
		advance.at.Store(int64(i + 1))
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

// roundsOf is what the rounds of a loop are called.
func roundsOf(step *compile.Step) string {
	if step.Label == "" {
		return "round"
	}
	return step.Label + " round"
}

// rounds runs those of a for_each, which are written out.
func (r *caseRun) rounds(ctx context.Context, steps []*compile.Step) error {
	advance := r.advances.begin("round", len(steps))
	defer r.advances.end(advance)
	for i := range steps {
		advance.at.Store(int64(i + 1))
		if err := r.step(ctx, steps[i]); err != nil {
			return err
		}
	}
	return nil
}
