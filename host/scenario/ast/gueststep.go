package ast

import (
	"slices"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// GuestActions are what a step can do with a guest.
var GuestActions = []string{"start", "run", "wait", "stop", "call"}

func (r *reader) guestAction(step *Step) {
	if !r.kind(step.Body, syntax.Scalar, "what stands behind guest") {
		return
	}
	if !slices.Contains(GuestActions, step.Body.Value) {
		r.errors.Report(diag.NotOneOf, step.Body.Span(), "a guest cannot %q", step.Body.Value).
			WithHint("%s", suggestOrList(step.Body.Value, GuestActions))
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
