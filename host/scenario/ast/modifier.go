package ast

import (
	"slices"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

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
