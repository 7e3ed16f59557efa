package shape

import (
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
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
	// Repeat is `repeat` with `do`.
	Repeat
	// Use is a fragment.
	Use
	// GuestAction is a step of a guest.
	GuestAction
	// Barrier is where guests and the timeline meet.
	Barrier
	// Parallel is branches that run at the same time.
	Parallel
	// ForEach is `for_each` with `do`, or with another action.
	ForEach
)

// Step is one step.
type Step struct {
	Node   *syntax.Node
	Action Action
	Key    *syntax.Node // of the action
	Body   *syntax.Node // of the action
	Verb   *verb.Verb   // of a Call
	Do     []*Step      // of a Block, Repeat, Parallel or ForEach
	Axes   []Axis       // of a ForEach

	Role, Name, If, As, Expect, Took, Within, Timeout, Leftovers *syntax.Node
	With, Args, Of                                               *syntax.Node
}

func (r *reader) optionalSteps(root *syntax.Node, name string) []*Step {
	node := root.Get(name)
	if node == nil {
		return nil
	}
	return r.steps(node)
}

func (r *reader) steps(node *syntax.Node) []*Step {
	items := r.list(node, stepList)
	steps := make([]*Step, 0, len(items))
	for _, item := range items {
		if step := r.step(item); step != nil {
			steps = append(steps, step)
		}
	}
	return steps
}

func (r *reader) step(node *syntax.Node) *Step {
	if !r.mapping(node, "a step") {
		return nil
	}
	step := &Step{Node: node, Action: -1}
	var unknown []*syntax.Node
	for _, pair := range node.Pairs {
		if action, v, isAction := r.actionOf(pair.Key.Value); isAction {
			if step.Key != nil {
				r.errors.Report(diag.TwoActions, pair.Key.Span(), "a step has one verb, and this one has %q already", step.Key.Value).
					WithHint("make two steps of it")
				continue
			}
			step.Action, step.Verb, step.Key, step.Body = action, v, pair.Key, pair.Value
			continue
		}
		if !step.setModifier(pair) {
			unknown = append(unknown, pair.Key)
		}
	}
	if step.Key == nil && node.Get("do") != nil {
		step.Action, step.Key, step.Body = Block, node.Key("do"), node.Get("do")
	}
	r.unknownKeys(step, unknown)
	if step.Key == nil {
		return nil
	}
	r.checkModifiers(step)
	r.body(step)
	return step
}

