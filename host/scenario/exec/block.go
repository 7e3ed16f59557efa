package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/progress"
	"rdmarun/host/scenario/timeline"
)

// repeat runs the rounds of a loop, here or where its role is.
func (r *caseRun) repeat(ctx context.Context, step *compile.Step, repeat *compile.Repeat) error {
	count := progress.Unknown
	if repeat.Count != nil {
		given, err := repeat.Count.Get(r.env)
		if err != nil {
			return r.failed(step, "", "repeat", err)
		}
		count = given.(int)
	}
	what := "round"
	if step.Label != "" {
		what = step.Label + " round"
	}
	advance := r.advances.Begin(what, count)
	defer r.advances.End(advance)
	if repeat.Role != "" && !r.turns.whole {
		return r.peers.loop(ctx, r, step, repeat, advance)
	}
	return r.loop(ctx, step, repeat, advance)
}

// loop runs the rounds of a loop here.
func (r *caseRun) loop(ctx context.Context, step *compile.Step, repeat *compile.Repeat, advance *progress.Step) error {
	defer r.shadow(repeat.Counter)()
	pace, err := r.paceOf(repeat, advance.Of)
	if err != nil {
		return r.failed(step, "", "repeat", err)
	}
	timed := step.Label != "" && r.loops.Enter(step.Label, r.tags)
	err = advance.Rounds(func(i int) error {
		begin, late, err := r.awaitRound(ctx, pace, i)
		switch {
		case errors.Is(err, errNoMore):
			return err
		case err != nil:
			return r.failed(step, "", "repeat", err)
		}
		if repeat.Counter != "" {
			r.env[repeat.Counter] = i
		}
		if step.Name != nil {
			if err := r.pushName(step); err != nil {
				return err
			}
			defer r.popName()
		}
		if err := r.list(ctx, repeat.Steps); err != nil {
			return err
		}
		if timed {
			r.loops.Round(r.now().Since(begin), late)
		}
		if len(repeat.Steps) == 0 && ctx.Err() != nil {
			return r.failed(step, "", "repeat", context.Cause(ctx))
		}
		return r.until(step, repeat)
	})
	if errors.Is(err, errNoMore) {
		err = nil
	}
	if timed {
		r.loops.Drop(pace.dropped)
		r.loops.Leave(err == nil, r.testbed.Clock().Virtual())
	}
	return err
}

// until ends a repeat whose condition holds.
func (r *caseRun) until(step *compile.Step, repeat *compile.Repeat) error {
	if repeat.Until == nil {
		return nil
	}
	over, err := repeat.Until.Get(r.env)
	if err != nil {
		return r.failed(step, "", "until", err)
	}
	if over == true {
		return errNoMore
	}
	return nil
}

// shadow remembers what a name means around a block, and returns what restores it.
func (r *caseRun) shadow(name string) (restore func()) {
	before, had := r.env[name]
	return func() {
		if had {
			r.env[name] = before
		} else {
			delete(r.env, name)
		}
	}
}

func (r *caseRun) use(ctx context.Context, step *compile.Step, use *compile.Use) error {
	values := make([]any, len(use.With))
	for i, parameter := range use.With {
		var err error
		if values[i], err = parameter.Value.Get(r.env); err != nil {
			return r.failed(step, "", "use "+use.Fragment, err)
		}
	}
	for i, parameter := range use.With {
		defer r.shadow(parameter.Name)()
		r.env[parameter.Name] = values[i]
	}
	if use.Fragment != "" {
		depth := len(r.uses)
		r.uses = append(r.uses[:depth:depth], step) // a branch may have the same beginning
		defer func() { r.uses = r.uses[:depth] }()
	}
	return r.list(ctx, use.Steps)
}

// used lists the steps that use the fragments around the current step, the innermost first.
func (r *caseRun) used() (list []string) {
	for _, step := range slices.Backward(r.uses) {
		list = append(
			list, fmt.Sprintf("%s:%d (%s)", step.Span.File(), step.Span.Line, step.Action.(*compile.Use).Fragment),
		)
	}
	return list
}

// parallel runs branches at the same time; the first failure is the step's.
func (r *caseRun) parallel(ctx context.Context, step *compile.Step, action *compile.Parallel) error {
	branches := make([]*caseRun, len(action.Branches))
	r.turns.next()
	for i := range branches {
		branches[i] = r.branch()
		branches[i].turns = r.turns.branch(i)
	}
	err := r.testbed.AtOnce(ctx, len(branches), func(ctx context.Context, i int) error {
		return branches[i].step(ctx, action.Branches[i])
	})
	for _, branch := range branches {
		r.join(branch)
	}
	if err != nil {
		return r.failed(step, "", "parallel", err)
	}
	return nil
}

// branch is a part of the run with its own names: other branches do not see what stands around its steps, and see the
// names it gives when it has ended.
func (r *caseRun) branch() *caseRun {
	b := *r
	b.env, b.given = maps.Clone(r.env), make(map[string]any)
	b.path, b.steps, b.loops, b.found = slices.Clone(r.path), 0, timeline.Loops{}, nil
	return &b
}

// join takes over what a branch has made.
func (r *caseRun) join(branch *caseRun) {
	r.steps += branch.steps
	r.loops.Join(&branch.loops)
	r.found = append(r.found, branch.found...)
	for name, value := range branch.given {
		r.env[name], r.given[name] = value, value
		if list, ok := value.(*sharedList); ok {
			r.env[name] = list.items // also what other branches have added
		}
	}
}
