package ast

import (
	"slices"

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

	// AnyResult is set for `expect: any`; Expect is nil then.
	AnyResult                                                    bool
	Role, Name, If, As, Expect, Took, Within, Timeout, Leftovers *syntax.Node
	With, Args, Of, Function                                     *syntax.Node
	// Tags are words, or names with values.
	Tags  []syntax.Pair
	XFail *XFail

	do, tags, xfail *syntax.Node
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
	case step.do != nil:
		step.Action, step.Key, step.Body = Block, step.Node.Key("do"), step.do
	}
	r.unknownKeys(step, unknown)
	return loop
}

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
	// ForEach is `for_each`, also of `do` or of one other action.
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

// actionRow is an action that is no verb.
type actionRow struct {
	Key
	action Action
}

var actions = []actionRow{
	{Key{"parallel", "steps that run at the same time; the first failure cancels the others"}, Parallel},
	{Key{"for_each", "the steps of \"do\", or the one action beside it, for each value of a list: {name: [a, b]}"}, ForEach},
	{Key{"repeat", "the steps of \"do\", or the one action beside it, several times; \"as\" names the counter, from 0"}, Repeat},
	{Key{"use", "the steps of a fragment, parameters given by \"with\""}, Use},
	{Key{"guest", "start, run, wait for or stop the guest of a role, or call one of its functions while it waits at a barrier"}, GuestAction},
	{Key{"barrier", "wait until the others \"of\" have come, too: guests to rdma.barrier, branches of a parallel step to the same step"}, Barrier},
}

// actionOf finds the action that a key stands for.
func (r *reader) actionOf(name string) (Action, *verb.Verb, bool) {
	if v := r.table.Lookup(name); v != nil {
		return Call, v, true
	}
	for _, a := range actions {
		if a.Name == name {
			return a.action, nil, true
		}
	}
	return 0, nil, false
}

// keyOf is the key of an action that is no verb.
func keyOf(action Action) string {
	for _, a := range actions {
		if a.action == action {
			return a.Name
		}
	}
	return "do"
}

// body checks what belongs to the action.
func (r *reader) body(step *Step) {
	switch step.Action {
	case Block, Parallel:
		step.Do = r.steps(step.Body)
	case Repeat, ForEach:
		if do := r.required(step.Node, "do", loopName(step)); do != nil {
			step.Do = r.steps(do)
		}
		r.loop(step)
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

// GuestActions are what a step can do with a guest.
var GuestActions = []string{"start", "run", "wait", "stop", "call"}

func (r *reader) guestAction(step *Step) {
	if !r.kind(step.Body, syntax.Scalar, "what stands behind guest") {
		return
	}
	if !slices.Contains(GuestActions, step.Body.Value) {
		r.errors.Report(diag.NotOneOf, step.Body.Span(), "a guest cannot %q", step.Body.Value).
			WithOneOf(step.Body.Value, GuestActions)
	}
	starts := step.Body.Value == "start" || step.Body.Value == "run"
	if step.Body.Value == "call" {
		r.required(step.Node, "function", "a call")
		return
	}
	if step.Function != nil {
		r.errors.Report(diag.Misplaced, step.Node.Key("function").Span(), "only a call has a function").WithHint("guest: call")
	}
	if step.Args != nil && !starts {
		r.errors.Report(diag.Misplaced, step.Node.Key("args").Span(), "arguments are given when a guest starts")
	}
	if (step.Expect != nil || step.AnyResult) && step.Body.Value == "start" {
		r.errors.Report(diag.Misplaced, step.Node.Key("expect").Span(), "a guest that has just started has no result yet").
			WithHint("expect it of the wait or stop step")
	}
}

// loopName is what messages call a loop.
func loopName(step *Step) string {
	if step.Action == Repeat {
		return "a repeat"
	}
	return "for_each"
}

// loop checks what stands behind `repeat` or `for_each`.
func (r *reader) loop(step *Step) {
	if step.Action == Repeat {
		r.kind(step.Body, syntax.Scalar, "the number of a repeat")
		return
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

// unknownKeys reports keys that are neither action nor modifier: the verb of a step without one, else
// a mistyped modifier.
func (r *reader) unknownKeys(step *Step, unknown []*syntax.Node) {
	if step.Key == nil && len(unknown) == 0 {
		r.errors.Report(diag.NoAction, step.Node.Span(), "this step does nothing: it has no verb").
			WithHint("for example: {role: client, connect: {ep: ep}}")
	}
	for _, key := range unknown {
		of := Names(keysOf(modifiers, func(m modifier) Key { return m.Key }))
		if step.Key != nil {
			r.errors.Report(diag.UnknownKey, key.Span(), "a step has no key %q", key.Value).WithOneOf(key.Value, of)
			continue
		}
		verbs := append(append([]string{"do"}, r.table.Names()...), Names(keysOf(actions, func(a actionRow) Key { return a.Key }))...)
		if diag.Suggest(key.Value, of) != "" && diag.Suggest(key.Value, verbs) == "" {
			r.errors.Report(diag.UnknownKey, key.Span(), "unknown key %q", key.Value).WithOneOf(key.Value, of)
			continue
		}
		r.errors.Report(diag.NoAction, key.Span(), "no verb is called %q", key.Value).WithOneOf(key.Value, verbs)
	}
}

// modifier is a key of a step beside its action.
type modifier struct {
	Key
	// of are the actions that it belongs to; none: all.
	of []Action
	// to is where its value goes.
	to func(*Step) **syntax.Node
}

var modifiers = []modifier{
	{Key{"role", "who does it; of a step of steps, who does those of them that do not say"},
		[]Action{Call, GuestAction, Block, Repeat, ForEach, Parallel}, func(s *Step) **syntax.Node { return &s.Role }},
	{Key{"name", "what reports call it"}, nil, func(s *Step) **syntax.Node { return &s.Name }},
	{Key{"if", "a condition; without it the step is left out"}, nil, func(s *Step) **syntax.Node { return &s.If }},
	{Key{"as", "a name for the result, or for the counter of a repeat; in a loop also one of several, eps[$(i)]"},
		[]Action{Call, Repeat, GuestAction}, func(s *Step) **syntax.Node { return &s.As }},
	{Key{"expect", "what the result must be; any: whatever the call returns and whatever comes, which something must"},
		[]Action{Call, GuestAction}, func(s *Step) **syntax.Node { return &s.Expect }},
	{Key{"took", "how long it must take: {min, max}"}, nil, func(s *Step) **syntax.Node { return &s.Took }},
	{Key{"within", "how long it may wait, on the provider's clock; of a step of steps, how long all may take"},
		[]Action{Call, GuestAction, Barrier, Block, Repeat, ForEach, Use, Parallel}, func(s *Step) **syntax.Node { return &s.Within }},
	{Key{"timeout", "how long it may take before the case fails"}, nil, func(s *Step) **syntax.Node { return &s.Timeout }},
	{Key{"leftovers", "ignore: what it leaves on queues does not fail the case"}, nil, func(s *Step) **syntax.Node { return &s.Leftovers }},
	{Key{"do", "steps"}, []Action{Block, Repeat, ForEach}, func(s *Step) **syntax.Node { return &s.do }},
	{Key{"with", "parameters of the fragment"}, []Action{Use}, func(s *Step) **syntax.Node { return &s.With }},
	{Key{"args", "arguments of the guest, instead of the role's; integers for a call"},
		[]Action{GuestAction}, func(s *Step) **syntax.Node { return &s.Args }},
	{Key{"function", "what a call calls: a function that the guest's module exports"},
		[]Action{GuestAction}, func(s *Step) **syntax.Node { return &s.Function }},
	{Key{"of", "roles and names of branches that meet"}, []Action{Barrier}, func(s *Step) **syntax.Node { return &s.Of }},
	{Key{"tags", "words, or {name: value}: they stand in records, and thresholds choose by them"}, nil, func(s *Step) **syntax.Node { return &s.tags }},
	{Key{"xfail", "that and when the step is known to fail; it fails when it does not"}, nil, func(s *Step) **syntax.Node { return &s.xfail }},
}

// Beside lists the actions that a modifier belongs to, by their keys, and tells whether verbs are among them; all is
// true for a modifier of every step.
func Beside(modifier string) (keys []string, verbs, all bool) {
	for _, m := range modifiers {
		if m.Name != modifier {
			continue
		}
		for _, action := range m.of {
			if action == Call {
				verbs = true
			} else {
				keys = append(keys, keyOf(action))
			}
		}
		return keys, verbs, m.of == nil
	}
	return nil, false, false
}

// setModifier stores the value of a modifier and tells whether the key is one.
func (s *Step) setModifier(pair syntax.Pair) bool {
	for i := range modifiers {
		if modifiers[i].Name == pair.Key.Value {
			*modifiers[i].to(s) = pair.Value
			return true
		}
	}
	return false
}

// checkModifiers reports modifiers that mean nothing beside the step's action.
// loop is the loop around the step when both stand in one mapping, nil when there is none.
func (r *reader) checkModifiers(step, loop *Step) {
	for _, m := range modifiers {
		at := step.Node.Key(m.Name)
		if at == nil || m.of == nil || slices.Contains(m.of, step.Action) {
			continue
		}
		if loop != nil && loop.As != nil && m.Name == "as" {
			continue // of the loop
		}
		r.errors.Report(diag.Misplaced, at.Span(), "%q means nothing beside %q", m.Name, step.Key.Value)
		if m.Name == "role" {
			step.Role = nil // or what a role means to its steps would be said of these, too
		}
	}
	if step.Verb != nil && step.Within != nil && !step.Verb.Waits {
		r.errors.Report(diag.Misplaced, step.Node.Key("within").Span(), "%s waits for nothing, so it has no \"within\"", step.Verb.Name)
	}
}

// AnyResult is the word of `expect: any`.
const AnyResult = "any"

func (r *reader) expectAndTook(step *Step) {
	if step.Leftovers != nil && step.Leftovers.Value != "ignore" {
		r.errors.Report(diag.NotOneOf, step.Leftovers.Span(), "leftovers can only be: ignore")
	}
	switch {
	case step.Expect == nil:
	case step.Expect.Kind == syntax.Scalar && step.Expect.Value == AnyResult:
		step.AnyResult, step.Expect = true, nil
	case step.Expect.Kind == syntax.Scalar && !step.Expect.IsNull():
		r.errors.Report(diag.WrongShape, step.Expect.Span(), "expect is a mapping of fields, or %s, and this is %q", AnyResult, step.Expect.Value)
		step.Expect = nil
	case !r.mapping(step.Expect, "expect"):
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
