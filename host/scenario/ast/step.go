package ast

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
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

	// AnyResult tells that `expect` is any; Expect is nil then.
	AnyResult                                                    bool
	Role, Name, If, As, Expect, Took, Within, Timeout, Leftovers *syntax.Node
	With, Args, Of, Function                                     *syntax.Node
	// Tags are words, or names with values.
	Tags  []syntax.Pair
	XFail *XFail

	tags, xfail *syntax.Node
}

// shareRole gives the role of a step of steps to those of them that have none.  What a fragment does is its own
// affair: it would mean another thing in each place of its use.
func (s *Step) shareRole() {
	if s.Role == nil || len(s.Do) == 0 {
		return
	}
	for _, step := range s.Do {
		if step.Role != nil || step.Action == Use || step.Action == Barrier {
			continue
		}
		step.Role = s.Role
		step.shareRole()
	}
	s.Role = nil
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

// step reads one step.  A loop beside another action is a loop around a step of its own.
func (r *reader) step(node *syntax.Node) *Step {
	if !r.mapping(node, "a step") {
		return nil
	}
	step := &Step{Node: node, Action: -1}
	loop := r.actions(step)
	if step.Key == nil {
		return nil
	}
	if loop != nil {
		inner := *step
		*step = *loop
		step.Do, step.Name, inner.Name = []*Step{&inner}, inner.Name, nil
		if step.Action == Repeat {
			step.As, inner.As = inner.As, nil // it names the counter
		}
		r.checkModifiers(&inner, step)
		r.body(&inner)
		r.loop(step)
		step.Tags = constantTags(inner.Tags) // thresholds choose the loop by them, too
		return step
	}
	r.checkModifiers(step, nil)
	r.body(step)
	return step
}

// actions finds the action of a step, and the loop beside it if there is one.
func (r *reader) actions(step *Step) (loop *Step) {
	var unknown []*syntax.Node
	for _, pair := range step.Node.Pairs {
		action, v, isAction := r.actionOf(pair.Key.Value)
		isLoop := isAction && (action == Repeat || action == ForEach)
		switch {
		case !isAction:
			if !step.setModifier(pair) {
				unknown = append(unknown, pair.Key)
			}
		case isLoop && loop != nil:
			r.errors.Report(diag.TwoActions, pair.Key.Span(), "a step has one loop, and this one has %q already", loop.Key.Value).
				WithHint("put one into the \"do\" of the other")
		case isLoop:
			loop = &Step{Node: step.Node, Action: action, Key: pair.Key, Body: pair.Value}
		case step.Key != nil:
			r.errors.Report(diag.TwoActions, pair.Key.Span(), "a step has one verb, and this one has %q already", step.Key.Value).
				WithHint("make two steps of it")
		default:
			step.Action, step.Verb, step.Key, step.Body = action, v, pair.Key, pair.Value
		}
	}
	switch {
	case step.Key != nil:
	case loop != nil:
		step.Action, step.Key, step.Body = loop.Action, loop.Key, loop.Body
		loop = nil
	case step.Node.Get("do") != nil:
		step.Action, step.Key, step.Body = Block, step.Node.Key("do"), step.Node.Get("do")
	}
	r.unknownKeys(step, unknown)
	return loop
}
