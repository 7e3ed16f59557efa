package exec

import (
	"context"
	"errors"
	"maps"

	"rdmarun/host/scenario/compile"
)

// errSibling is the cause of a branch's end when another has failed.
var errSibling = errors.New("another branch failed")

// branchEnd is how a branch ended.
type branchEnd struct {
	index int
	err   error
	panic any
}

// parallel runs branches at the same time, each in a goroutine of its own that works only while it has the
// lab's baton.  It ends when all have ended; the first failure cancels the others, and is the step's.
func (r *caseRun) parallel(ctx context.Context, step *compile.Step, action *compile.Parallel) error {
	running, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	clock := r.lab.Clock()
	ends := make(chan branchEnd, len(action.Branches))
	branches := make([]*caseRun, len(action.Branches))
	for i, branchStep := range action.Branches {
		branches[i] = r.branch()
		run := func() {
			end := branchEnd{index: i}
			defer func() { ends <- end }()
			r.lab.Take()
			defer r.lab.Leave()
			defer func() {
				if end.panic = recover(); end.panic != nil {
					cancel(errSibling)
				}
			}()
			if end.err = branches[i].step(running, branchStep); end.err != nil {
				cancel(errSibling)
			}
		}
		r.lab.Outside(func() { clock.Launch(run) })
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
	r.lab.Outside(func() { clock.Outside(wait) })
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
	b.found = nil
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
