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

// repeat runs the rounds of a loop, here or in the process of its role.
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
	running := r.progress.Begin(what, count)
	defer r.progress.End(running)
	if repeat.Role != "" && !r.position.whole {
		return r.peers.loop(ctx, r, step, repeat, running)
	}
	return r.loop(ctx, step, repeat, running)
}

// loop runs the rounds of a loop in this process.
func (r *caseRun) loop(ctx context.Context, step *compile.Step, repeat *compile.Repeat, running *progress.Step) error {
	defer r.shadow(repeat.Counter)()
	pace, err := r.paceOf(repeat, running.Of)
	if err != nil {
		return r.failed(step, "", "repeat", err)
	}
	timed := step.Label != "" && r.loops.Enter(step.Label, r.tags, repeat.StageNames())
	err = running.Rounds(func(i int) error {
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
			r.loops.Round(pace.stage, r.now().Since(begin), late)
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
		for stage, rounds := range pace.dropped {
			r.loops.Drop(stage, rounds)
		}
		r.loops.Leave(err == nil, r.testbed.Clock().Virtual())
	}
	return err
}

// until ends a repeat when its condition holds.
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

// shadow saves the value of a name around a block, and returns a function that restores it.
func (r *caseRun) shadow(name string) (restore func()) {
	before, had := r.env[name]
	hidden, _ := r.env[compile.Hidden].(map[string]any)
	_, again := hidden[name]
	if hidden != nil && !again {
		hidden[name] = before
	}
	return func() {
		if hidden != nil && !again {
			delete(hidden, name)
		}
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

// parallel runs branches at the same time.  The error is that of the first failed branch.
func (r *caseRun) parallel(ctx context.Context, step *compile.Step, action *compile.Parallel) error {
	branches := make([]*caseRun, len(action.Branches))
	r.position.Next()
	for i := range branches {
		branches[i] = r.branch()
		branches[i].position = position{Position: r.position.Branch(i)}
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

// branch is a part of the run with its own names.  Other branches see the names that it gives when it has ended.
func (r *caseRun) branch() *caseRun {
	b := *r
	b.env, b.given = maps.Clone(r.env), make(map[string]any)
	if hidden, is := r.env[compile.Hidden].(map[string]any); is {
		b.env[compile.Hidden] = maps.Clone(hidden)
	}
	b.path, b.steps, b.loops, b.found = slices.Clone(r.path), 0, timeline.Loops{}, nil
	return &b
}

// join adds the results of a branch to the run.
func (r *caseRun) join(branch *caseRun) {
	r.steps += branch.steps
	r.loops.Join(&branch.loops)
	r.found = append(r.found, branch.found...)
	for name, value := range branch.given {
		r.env[name], r.given[name] = value, value
		if list, ok := value.(*sharedList); ok {
			r.env[name] = list.items // includes the items of other branches
		}
	}
}
