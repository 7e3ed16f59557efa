package ast

import (
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Action is what kind of step a step is.
type Action int

const (
	// Call is a verb.
	Call Action = iota
	// Block is `do`.
	Block
	// Repeat is `repeat`, of the steps of `do` or of one other action.
	Repeat
	// Use is a fragment.
	Use
	// GuestAction is a step of a guest.
	GuestAction
	// Barrier is where guests and the timeline meet.
	Barrier
	// Parallel is branches that run at the same time.
	Parallel
	// ForEach is `for_each`, likewise.
	ForEach
)

// OfSteps tells whether the action is other steps.
func (a Action) OfSteps() bool {
	switch a {
	case Block, Repeat, Use, Parallel, ForEach:
		return true
	}
	return false
}

// actions that are no verbs.
var actions = []struct {
	key
	action Action
}{
	{key{"parallel", "steps that run at the same time; the first failure cancels the others"}, Parallel},
	{key{"for_each", "the steps of \"do\", or the one action beside it, for each value of a list: {name: [a, b]}"}, ForEach},
	{key{"repeat", "the steps of \"do\", or the one action beside it, several times; \"as\" names the counter, from 0"}, Repeat},
	{key{"use", "the steps of a fragment, parameters given by \"with\""}, Use},
	{key{"guest", "start, run, wait for or stop the guest of a role, or call one of its functions while it waits at a barrier"}, GuestAction},
	{key{"barrier", "wait until the others \"of\" have come, too: guests to rdma.barrier, branches of a parallel step to the same step"}, Barrier},
}

// actionOf finds the action that a key stands for.
func (r *reader) actionOf(name string) (Action, *verb.Verb, bool) {
	if v := r.table.Lookup(name); v != nil {
		return Call, v, true
	}
	for _, a := range actions {
		if a.name == name {
			return a.action, nil, true
		}
	}
	return 0, nil, false
}

// keyOf is the key of an action that is no verb.
func keyOf(action Action) string {
	for _, a := range actions {
		if a.action == action {
			return a.name
		}
	}
	return "do"
}

func (r *reader) actionNames() []string {
	list := append([]string{"do"}, r.table.Names()...)
	for _, a := range actions {
		list = append(list, a.name)
	}
	return list
}

// body checks what belongs to the action.
func (r *reader) body(step *Step) {
	switch step.Action {
	case Block:
		step.Do = r.steps(step.Body)
	case Repeat, ForEach:
		if do := r.required(step.Node, "do", loopName(step)); do != nil {
			step.Do = r.steps(do)
		}
		r.loop(step)
	case Parallel:
		step.Do = r.steps(step.Body)
	case Use:
		r.kind(step.Body, syntax.Scalar, "the name of a fragment")
		if step.With != nil && !r.mapping(step.With, "with") {
			step.With = nil
		}
	case GuestAction:
		r.guestAction(step)
	case Barrier:
		r.kind(step.Body, syntax.Scalar, "the name of a barrier")
		r.required(step.Node, "of", "a barrier")
	case Call:
		if step.Verb.Scalar == "" {
			r.kind(step.Body, syntax.Mapping, "what stands behind "+step.Verb.Name)
		}
	}
	step.shareRole()
	r.expectAndTook(step)
	step.Tags, step.XFail = r.stepTags(step.tags), r.xfail(step.xfail)
}
