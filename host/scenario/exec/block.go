package exec

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
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
			r.popName()
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
		r.loops.leave(r.testbed.Clock().Virtual())
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

// shadow remembers what a name means around a block and returns what brings it back.
func (r *caseRun) shadow(name string) (restore func()) {
	if name == "" {
		return func() {}
	}
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
		value, err := parameter.Value.Get(r.env)
		if err != nil {
			return r.failed(step, "", "use "+use.Fragment, err)
		}
		values[i] = value
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

// used lists who uses the fragments around the current step, the innermost first.
func (r *caseRun) used() []string {
	if len(r.uses) == 0 {
		return nil
	}
	list := make([]string, 0, len(r.uses))
	for i := len(r.uses) - 1; i >= 0; i-- {
		step := r.uses[i]
		list = append(list, fmt.Sprintf("%s:%d (%s)", step.Span.File(), step.Span.Line, step.Action.(*compile.Use).Fragment))
	}
	return list
}

// errSibling is the cause of a branch's end when another has failed.
var errSibling = errors.New("another branch failed")

// branchEnd is how a branch ended.
type branchEnd struct {
	index int
	err   error
	panic any
}

// parallel runs branches at the same time, each in a goroutine of its own that works only while it has the
// lock of the testbed.  It ends when all have ended; the first failure cancels the others, and is the step's.
func (r *caseRun) parallel(ctx context.Context, step *compile.Step, action *compile.Parallel) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := r.testbed.Clock()
	ends := make(chan branchEnd, len(action.Branches))
	branches := make([]*caseRun, len(action.Branches))
	for i, branchStep := range action.Branches {
		branches[i] = r.branch()
		run := func() {
			end := branchEnd{index: i}
			defer func() { ends <- end }()
			r.testbed.Lock()
			defer r.testbed.Unlock()
			defer func() {
				if end.panic = recover(); end.panic != nil {
					cancel(errSibling)
				}
			}()
			if end.err = branches[i].step(running, branchStep); end.err != nil {
				cancel(errSibling)
			}
		}
		r.testbed.Unlocked(func() { clock.Launch(run) })
	}
	var first error
	var panicked any
	wait := func() {
		for range action.Branches {
			end := <-ends
			if panicked == nil {
				panicked = end.panic
			}
			if end.err != nil && (first == nil || errors.Is(first, errSibling)) {
				first = end.err
			}
		}
	}
	r.testbed.Unlocked(func() { clock.Outside(wait) })
	for _, branch := range branches {
		r.join(branch)
	}
	if panicked != nil {
		panic(panicked) // of this case, which recovers it
	}
	if first != nil {
		return r.failed(step, "", "parallel", first)
	}
	return nil
}

// branch is a part of the run with names of its own: what stands around its steps is its alone, and the
// names it gives others see when it has ended.
func (r *caseRun) branch() *caseRun {
	b := *r
	b.env, b.given = maps.Clone(r.env), make(map[string]any)
	b.path, b.steps, b.loops = r.pathCopy(), 0, loops{}
	b.found, b.forgotten = nil, nil
	return &b
}

// join takes what a branch has made.
func (r *caseRun) join(branch *caseRun) {
	r.steps += branch.steps
	r.loops.done = append(r.loops.done, branch.loops.done...)
	r.found = append(r.found, branch.found...)
	for name, value := range branch.given {
		r.env[name], r.given[name] = value, value
		if list, ok := value.(*several); ok {
			r.env[name] = list.items // also what other branches have added
		}
	}
}

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
	waiting, cancel := r.testbed.Clock().WithTimeout(ctx, within)
	defer cancel()
	begin := r.now()
	err = r.testbed.Barrier(waiting, gathering)
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
