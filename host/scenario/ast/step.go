package ast

import (
	"reflect"
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
	Shared *syntax.Node // of a step of steps: the role that it gives to those that have none

	// AnyResult is set for `expect: any`; Expect is nil then.
	AnyResult bool
	// Tags are words, or names with values.
	Tags  []syntax.Pair
	XFail *XFail

	// The keys next to the action.  `of` has the keys of the actions that one belongs to, "verb" for verbs; without it,
	// all.
	Role      *syntax.Node `key:"role" of:"verb guest program do repeat for_each parallel" doc:"the role that executes it. For a step of steps, the default role of those"`
	Name      *syntax.Node `key:"name" doc:"what reports call it"`
	If        *syntax.Node `key:"if" doc:"a condition: if it is false, the step is skipped"`
	As        *syntax.Node `key:"as" of:"verb repeat guest program" doc:"a name for the result, or for the counter of a repeat. In a loop it may be one of several, eps[$(i)]"`
	Expect    *syntax.Node `key:"expect" of:"verb guest program" doc:"expected values of the result. any: the call may return anything, but a step that waits must get something"`
	Took      *syntax.Node `key:"took" doc:"how long it must take: {min, max}"`
	Within    *syntax.Node `key:"within" of:"verb guest program barrier do repeat for_each use parallel" doc:"how long it may wait, on the provider's clock. For a step of steps, the time of all of them"`
	Timeout   *syntax.Node `key:"timeout" doc:"how long it may take before the case fails"`
	Leftovers *syntax.Node `key:"leftovers" doc:"ignore: unmatched completions and events of the step do not fail the case"`
	DoNode    *syntax.Node `key:"do" of:"do repeat for_each" doc:"steps"`
	With      *syntax.Node `key:"with" of:"use" doc:"parameters of the fragment"`
	Args      *syntax.Node `key:"args" of:"guest program" doc:"arguments of the guest or the program, instead of the role's. For a call, integers"`
	Function  *syntax.Node `key:"function" of:"guest" doc:"the function to call: one that the guest's module exports"`
	Signal    *syntax.Node `key:"signal" of:"program" doc:"what is sent to a program: SIGUSR1"`
	Of        *syntax.Node `key:"of" of:"barrier" doc:"roles and names of branches that meet"`
	TagsNode  *syntax.Node `key:"tags" doc:"words, or {name: value}. Records have them, and thresholds choose by them"`
	XFailNode *syntax.Node `key:"xfail" doc:"whether and when the step is known to fail. If it then passes, that is a failure"`
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
	s.Shared, s.Role = s.Role, nil
}

// IsOf reports whether a role is that of a step and of all steps in it.
func (s *Step) IsOf(role *syntax.Node) bool {
	if len(s.Do) == 0 {
		return s.Role == role
	}
	return !slices.ContainsFunc(s.Do, func(step *Step) bool { return !step.IsOf(role) })
}

// By is a copy of a step, and of the steps in it, with another role.
func (s *Step) By(role *syntax.Node) *Step {
	copied := *s
	if len(s.Do) == 0 {
		copied.Role = role
		return &copied
	}
	copied.Shared = nil // each of the steps has it
	copied.Do = make([]*Step, len(s.Do))
	for i, step := range s.Do {
		copied.Do[i] = step.By(role)
	}
	return &copied
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

// step reads one step.  A loop next to another action is a loop around a step of its own.
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

// actions finds the action of a step, and the loop next to it if there is one.
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
			r.errors.Report(
				diag.TwoActions, pair.Key.Span(), "a step has one loop, and this one has %q already", loop.Key.Value,
			).
				WithHint("put one into the \"do\" of the other")
		case isLoop:
			loop = &Step{Node: step.Node, Action: action, Key: pair.Key, Body: pair.Value}
		case step.Key != nil:
			r.errors.Report(
				diag.TwoActions, pair.Key.Span(), "a step has one verb, and this one has %q already", step.Key.Value,
			).
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
	case step.DoNode != nil:
		step.Action, step.Key, step.Body = Block, step.Node.Key("do"), step.DoNode
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
	// ProgramAction is a step of a program.
	ProgramAction
	// Barrier is where guests and the timeline meet.
	Barrier
	// Parallel is branches that run at the same time.
	Parallel
	// ForEach is `for_each`, also of `do` or of one other action.
	ForEach
)

// OfSteps reports whether the action is other steps.
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
	{
		Key{
			"parallel",
			"steps that run at the same time; the first failure cancels the others.  A step of a counted role " +
				"is a branch for each instance, and so is a do, repeat or for_each with only its steps",
		},
		Parallel,
	},
	{
		Key{"for_each", "the steps of \"do\", or the one action of the step, for each value of a list: {name: [a, b]}"},
		ForEach,
	},
	{
		Key{
			"repeat",
			"the steps of \"do\", or the one action of the step, several times: a number, or {for: 60s}, " +
				"{times, until, rate, stages}. \"as\" names the counter, from 0",
		},
		Repeat,
	},
	{Key{"use", "the steps of a fragment, parameters given by \"with\""}, Use},
	{
		Key{
			"guest",
			"start, run, wait for or stop the guest of a role, or call one of its functions while it waits at a " +
				"barrier",
		},
		GuestAction,
	},
	{Key{"program", "start, run, wait for or stop the program of a role, or send it a signal"}, ProgramAction},
	{
		Key{
			"barrier",
			"wait until the others \"of\" have come, too: guests to rdma.barrier, branches of a parallel step to the " +
				"same step",
		},
		Barrier,
	},
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

// verbKey stands for the keys of all verbs.
const verbKey = "verb"

// keyOf is the key of an action.
func keyOf(action Action) string {
	if action == Call {
		return verbKey
	}
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
		r.executableAction(step, "guest", GuestActions)
	case ProgramAction:
		r.executableAction(step, "program", ProgramActions)
	case Barrier:
		r.kind(step.Body, syntax.Scalar, "the name of a barrier")
		r.required(step.Node, "of", "a barrier")
	case Call:
		if step.Verb.Scalar == "" {
			r.kind(step.Body, syntax.Mapping, "the value of "+step.Verb.Name)
		}
	}
	step.shareRole()
	r.expectAndTook(step)
	step.Tags, step.XFail = r.stepTags(step.TagsNode), r.xfail(step.XFailNode)
}

// GuestActions and ProgramActions are what a step can do with a guest, and with a program.
var (
	GuestActions   = []string{"start", "run", "wait", "stop", "call"}
	ProgramActions = []string{"start", "run", "wait", "stop", "signal"}
)

// ownKeys are the keys that only one action with a guest or a program has.
var ownKeys = map[string]string{"function": "call", "signal": "signal"}

// executableAction checks a step of a guest or a program, which what names.
func (r *reader) executableAction(step *Step, what string, actions []string) {
	if !r.kind(step.Body, syntax.Scalar, "the value of "+what) {
		return
	}
	does := step.Body.Value
	if !slices.Contains(actions, does) {
		r.errors.Report(diag.NotOneOf, step.Body.Span(), "a %s cannot %q", what, does).WithOneOf(does, actions)
	}
	for key, owner := range ownKeys {
		switch at := step.Node.Key(key); {
		case does == owner && slices.Contains(actions, owner):
			r.required(step.Node, key, what+": "+owner)
		case at != nil && slices.Contains(actions, owner):
			r.errors.Report(diag.Misplaced, at.Span(), "only \"%s: %s\" has the key %q", what, owner, key)
		}
	}
	starts := does == "start" || does == "run"
	if step.Args != nil && !starts && does != "call" {
		r.errors.Report(diag.Misplaced, step.Node.Key("args").Span(), "arguments are given when a %s starts", what)
	}
	if (step.Expect != nil || step.AnyResult) && (does == "start" || does == "signal") {
		r.errors.Report(
			diag.Misplaced, step.Node.Key("expect").Span(), "a %s that goes on has no result yet", what,
		).
			WithHint("expect it of the wait or stop step")
		step.Expect, step.AnyResult = nil, false
	}
}

// loopName is what messages call a loop.
func loopName(step *Step) string {
	if step.Action == Repeat {
		return "a repeat"
	}
	return "for_each"
}

// loop checks the value of `repeat` or `for_each`.
func (r *reader) loop(step *Step) {
	if step.Action == Repeat {
		r.repeat(step.Body)
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
		r.errors.Report(diag.EmptyList, step.Body.Span(), "for_each without values").WithHint(
			"for_each: {size: [1, 4096]}",
		)
	}
}

// repeat checks how often something is done: a number, or what ends it.
func (r *reader) repeat(body *syntax.Node) {
	if body.Kind != syntax.Mapping {
		r.kind(body, syntax.Scalar, "the number of a repeat, or a mapping of what ends it,")
		return
	}
	r.keys(body, repeatKeys)
	if rate := body.Get("rate"); len(body.Pairs) == 0 || rate != nil && len(body.Pairs) == 1 {
		r.errors.Report(diag.MissingKey, body.Span(), "nothing ends this repeat").WithHint(
			"repeat: {for: 60s}, or times or until",
		)
	}
	stages := body.Get("stages")
	if stages == nil {
		return
	}
	for _, other := range []string{"for", "rate"} {
		if both := body.Get(other); both != nil {
			r.errors.Report(diag.Conflict, both.Span(), "stages have their own %s", other)
		}
	}
	if stages.Kind != syntax.Sequence {
		r.errors.Report(diag.WrongShape, stages.Span(), "stages must be a list, and this is a %s", stages.Kind).
			WithHint("stages: [{for: 10s, rate: 10/s}, {for: 30s, to: 1000/s}]")
		return
	}
	for i, stage := range r.list(stages, "stages") {
		if !r.mapping(stage, "a stage") {
			continue
		}
		r.keys(stage, rateStageKeys)
		if name := stage.Get("name"); name != nil {
			r.kind(name, syntax.Scalar, "the name of a stage")
		}
		if stage.Get("for") == nil {
			r.errors.Report(diag.MissingKey, stage.Span(), "this stage has no end").WithHint("for: 10s")
		}
		if i == 0 && stage.Get("rate") == nil {
			r.errors.Report(diag.MissingKey, stage.Span(), "the first stage has no rate").WithHint("rate: 10/s")
		}
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
		of := Names(stepSection.keys)
		if step.Key != nil {
			r.errors.Report(diag.UnknownKey, key.Span(), "a step has no key %q", key.Value).WithOneOf(key.Value, of)
			continue
		}
		verbs := append(
			append([]string{"do"}, r.table.Names()...),
			Names(keysOf(actions, func(a actionRow) Key { return a.Key }))...,
		)
		if diag.Suggest(key.Value, of) != "" && diag.Suggest(key.Value, verbs) == "" {
			r.errors.Report(diag.UnknownKey, key.Span(), "unknown key %q", key.Value).WithOneOf(key.Value, of)
			continue
		}
		r.errors.Report(diag.NoAction, key.Span(), "no verb is called %q", key.Value).WithOneOf(key.Value, verbs)
	}
}

// ActionsOf lists the actions a modifier belongs to, by their keys, and reports whether verbs are among them. all is
// true for a modifier of every step.
func ActionsOf(modifier string) (keys []string, verbs, all bool) {
	of := stepSection.field(modifier).of
	keys = slices.DeleteFunc(slices.Clone(of), func(key string) bool { return key == verbKey })
	return keys, len(keys) < len(of), len(of) == 0
}

// setModifier stores the value of a modifier and reports whether the key is one.
func (s *Step) setModifier(pair syntax.Pair) bool {
	field := stepSection.field(pair.Key.Value)
	if field == nil {
		return false
	}
	reflect.ValueOf(s).Elem().FieldByIndex(field.index).Set(reflect.ValueOf(pair.Value))
	return true
}

// checkModifiers reports modifiers that the step's action does not have.
// loop is the loop around the step when both are in one mapping, nil when there is none.
func (r *reader) checkModifiers(step, loop *Step) {
	for _, m := range stepSection.fields {
		at := step.Node.Key(m.name)
		if at == nil || len(m.of) == 0 || slices.Contains(m.of, keyOf(step.Action)) {
			continue
		}
		if loop != nil && loop.As != nil && m.name == "as" {
			continue // of the loop
		}
		r.errors.Report(diag.Misplaced, at.Span(), "%q means nothing with %q", m.name, step.Key.Value)
		if m.name == "role" {
			step.Role = nil // or its steps would get errors about the role, too
		}
	}
	if step.Verb != nil && step.Within != nil && !step.Verb.Waits {
		r.errors.Report(
			diag.Misplaced, step.Node.Key("within").Span(), "%s waits for nothing, so it has no \"within\"",
			step.Verb.Name,
		)
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
		r.errors.Report(
			diag.WrongShape, step.Expect.Span(), "expect is a mapping of fields, or %s, and this is %q", AnyResult,
			step.Expect.Value,
		)
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
