package ast

import (
	"slices"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// modifiers are the keys of a step beside its action, each with the actions it belongs to; none: all.
var modifiers = []struct {
	key
	of []Action
}{
	{key{"role", "who does it; of a step of steps, who does those of them that do not say"},
		[]Action{Call, GuestAction, Block, Repeat, ForEach, Parallel}},
	{key{"name", "what reports call it"}, nil},
	{key{"if", "a condition; without it the step is left out"}, nil},
	{key{"as", "a name for the result, or for the counter of a repeat; in a loop also one of several, eps[$(i)]"}, []Action{Call, Repeat, GuestAction}},
	{key{"expect", "what the result must be; any: whatever the call returns and whatever comes, which something must"}, []Action{Call, GuestAction}},
	{key{"took", "how long it must take: {min, max}"}, nil},
	{key{"within", "how long it may wait, on the provider's clock; of a step of steps, how long all may take"},
		[]Action{Call, GuestAction, Barrier, Block, Repeat, ForEach, Use, Parallel}},
	{key{"timeout", "how long it may take before the case fails"}, nil},
	{key{"leftovers", "ignore: what it leaves on queues does not fail the case"}, nil},
	{key{"do", "steps"}, []Action{Block, Repeat, ForEach}},
	{key{"with", "parameters of the fragment"}, []Action{Use}},
	{key{"args", "arguments of the guest, instead of the role's; integers for a call"}, []Action{GuestAction}},
	{key{"function", "what a call calls: a function that the guest's module exports"}, []Action{GuestAction}},
	{key{"of", "roles and names of branches that meet"}, []Action{Barrier}},
	{key{"tags", "words, or {name: value}: they stand in records, and thresholds choose by them"}, nil},
	{key{"xfail", "that and when the step is known to fail; it fails when it does not"}, nil},
}

// Beside lists the actions that a modifier belongs to, by their keys, and tells whether verbs are among them; all is
// true for a modifier of every step.
func Beside(modifier string) (keys []string, verbs, all bool) {
	for _, m := range modifiers {
		if m.name != modifier {
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

func modifierNames() []string {
	var list []string
	for _, m := range modifiers {
		list = append(list, m.name)
	}
	return list
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
	case "function":
		s.Function = pair.Value
	case "of":
		s.Of = pair.Value
	case "tags":
		s.tags = pair.Value
	case "xfail":
		s.xfail = pair.Value
	default:
		return pair.Key.Value == "do"
	}
	return true
}

// checkModifiers reports modifiers that mean nothing beside the step's action.
// loop is the loop around the step when both stand in one mapping, nil when there is none.
func (r *reader) checkModifiers(step, loop *Step) {
	for _, m := range modifiers {
		at := step.Node.Key(m.name)
		if at == nil || m.of == nil || slices.Contains(m.of, step.Action) {
			continue
		}
		if loop != nil && loop.As != nil && m.name == "as" {
			continue // of the loop
		}
		r.errors.Report(diag.Misplaced, at.Span(), "%q means nothing beside %q", m.name, step.Key.Value)
		if m.name == "role" {
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
