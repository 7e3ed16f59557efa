package ast

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

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
