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

// actions that are no verbs.
var actions = []struct {
	key
	action Action
}{
	{key{"parallel", "steps that run at the same time; the first failure cancels the others"}, Parallel},
	{key{"for_each", "the steps of \"do\" for each value of a list: {name: [a, b]}"}, ForEach},
	{key{"repeat", "the steps of \"do\" several times; \"as\" names the counter, from 0"}, Repeat},
	{key{"use", "the steps of a fragment, parameters given by \"with\""}, Use},
	{key{"guest", "start, run, wait or stop: the guest of a role"}, GuestAction},
	{key{"barrier", "wait until the guests of the roles \"of\" have come to rdma.barrier"}, Barrier},
}

// modifiers are the keys of a step beside its action, each with the actions it belongs to; none: all.
var modifiers = []struct {
	key
	of []Action
}{
	{key{"role", "who does it"}, []Action{Call, GuestAction}},
	{key{"name", "what reports call it"}, nil},
	{key{"if", "a condition; without it the step is left out"}, nil},
	{key{"as", "a name for the result, or for the counter of a repeat"}, []Action{Call, Repeat, GuestAction}},
	{key{"expect", "what the result must be"}, []Action{Call, GuestAction}},
	{key{"took", "how long it must take: {min, max}"}, nil},
	{key{"within", "how long it may wait"}, []Action{Call, GuestAction, Barrier}},
	{key{"timeout", "how long it may take before the case fails"}, nil},
	{key{"leftovers", "ignore: what it leaves on queues does not fail the case"}, nil},
	{key{"do", "steps"}, []Action{Block, Repeat, ForEach}},
	{key{"with", "parameters of the fragment"}, []Action{Use}},
	{key{"args", "arguments of the guest, instead of the role's"}, []Action{GuestAction}},
	{key{"of", "roles that meet"}, []Action{Barrier}},
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

// setModifier stores the value of a modifier and tells whether the key is one.
func (s *Step) setModifier(pair syntax.Pair) bool {
	switch pair.Key.Value {
	case "role":
		s.Role = pair.Value
	case "name":
		s.Name = pair.Value
	case "if":
		s.If = pair.Value
	case "as":
		s.As = pair.Value
	case "expect":
		s.Expect = pair.Value
	case "took":
		s.Took = pair.Value
	case "within":
		s.Within = pair.Value
	case "timeout":
		s.Timeout = pair.Value
	case "leftovers":
		s.Leftovers = pair.Value
	case "with":
		s.With = pair.Value
	case "args":
		s.Args = pair.Value
	case "of":
		s.Of = pair.Value
	default:
		return pair.Key.Value == "do"
	}
	return true
}

// unknownKeys reports keys that are neither action nor modifier: the verb of a step without one, else
// a mistyped modifier.
func (r *reader) unknownKeys(step *Step, unknown []*syntax.Node) {
	candidates := r.actionNames()
	if step.Key == nil && len(unknown) == 0 {
		r.errors.Report(diag.NoAction, step.Node.Span(), "this step does nothing: it has no verb").
			WithHint("for example: {role: client, connect: {ep: ep}}")
		return
	}
	if step.Key != nil {
		candidates = candidates[:0]
		for _, m := range modifiers {
			candidates = append(candidates, m.name)
		}
	}
	for _, key := range unknown {
		if step.Key == nil && diag.Suggest(key.Value, modifierNames()) != "" && diag.Suggest(key.Value, candidates) == "" {
			r.errors.Report(diag.UnknownKey, key.Span(), "unknown key %q", key.Value).
				WithHint("%s", diag.DidYouMean(key.Value, modifierNames()))
			continue
		}
		if step.Key == nil {
			r.errors.Report(diag.NoAction, key.Span(), "no verb is called %q", key.Value).
				WithHint("%s", suggestOrList(key.Value, candidates))
			continue
		}
		r.errors.Report(diag.UnknownKey, key.Span(), "a step has no key %q", key.Value).
			WithHint("%s", suggestOrList(key.Value, candidates))
	}
}

func suggestOrList(word string, candidates []string) string {
	if hint := diag.DidYouMean(word, candidates); hint != "" {
		return hint
	}
	return "there are: " + strings.Join(candidates, ", ")
}

func modifierNames() []string {
	var list []string
	for _, m := range modifiers {
		list = append(list, m.name)
	}
	return list
}

func (r *reader) actionNames() []string {
	list := append([]string{"do"}, r.table.Names()...)
	for _, a := range actions {
		list = append(list, a.name)
	}
	return list
}

// checkModifiers reports modifiers that mean nothing beside the step's action.
func (r *reader) checkModifiers(step *Step) {
	for _, m := range modifiers {
		at := step.Node.Key(m.name)
		if at == nil || m.of == nil || slices.Contains(m.of, step.Action) {
			continue
		}
		r.errors.Report(diag.Misplaced, at.Span(), "%q means nothing beside %q", m.name, step.Key.Value)
	}
	if step.Verb != nil && step.Within != nil && !step.Verb.Waits {
		r.errors.Report(diag.Misplaced, step.Node.Key("within").Span(), "%s waits for nothing, so it has no \"within\"", step.Verb.Name)
	}
}

// body checks what belongs to the action.
func (r *reader) body(step *Step) {
	switch step.Action {
	case Block:
		step.Do = r.steps(step.Body)
	case Repeat:
		r.kind(step.Body, syntax.Scalar, "the number of a repeat")
		if do := r.required(step.Node, "do", "a repeat"); do != nil {
			step.Do = r.steps(do)
		}
	case Parallel:
		step.Do = r.steps(step.Body)
	case ForEach:
		r.forEach(step)
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
	r.expectAndTook(step)
}

// forEach checks the lists of a for_each.
func (r *reader) forEach(step *Step) {
	if do := r.required(step.Node, "do", "for_each"); do != nil {
		step.Do = r.steps(do)
	}
	if !r.mapping(step.Body, "for_each") {
		return
	}
	for _, pair := range step.Body.Pairs {
		if r.name(pair.Key) {
			step.Axes = append(step.Axes, Axis{pair.Key, r.words(pair.Value, "the values of "+pair.Key.Value)})
		}
	}
	if len(step.Axes) == 0 {
		r.errors.Report(diag.EmptyList, step.Body.Span(), "for_each without values").WithHint("for_each: {size: [1, 4096]}")
	}
}

func (r *reader) expectAndTook(step *Step) {
	if step.Leftovers != nil && step.Leftovers.Value != "ignore" {
		r.errors.Report(diag.NotOneOf, step.Leftovers.Span(), "leftovers can only be: ignore")
	}
	if step.Expect != nil && !r.mapping(step.Expect, "expect") {
		step.Expect = nil
	}
	if step.Took != nil {
		if !r.mapping(step.Took, "took") {
			step.Took = nil
			return
		}
		r.keys(step.Took, tookKeys)
	}
}

// GuestActions are what a step can do with a guest.
var GuestActions = []string{"start", "run", "wait", "stop"}

func (r *reader) guestAction(step *Step) {
	if !r.kind(step.Body, syntax.Scalar, "what stands behind guest") {
		return
	}
	if !slices.Contains(GuestActions, step.Body.Value) {
		r.errors.Report(diag.NotOneOf, step.Body.Span(), "a guest cannot %q", step.Body.Value).
			WithHint("%s", suggestOrList(step.Body.Value, GuestActions))
	}
	starts := step.Body.Value == "start" || step.Body.Value == "run"
	if step.Args != nil && !starts {
		r.errors.Report(diag.Misplaced, step.Node.Key("args").Span(), "arguments are given when a guest starts")
	}
	if step.Expect != nil && step.Body.Value == "start" {
		r.errors.Report(diag.Misplaced, step.Node.Key("expect").Span(), "a guest that has just started has no result yet").
			WithHint("expect it of the wait or stop step")
	}
}
