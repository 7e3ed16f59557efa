package exec

import (
	"context"
	"fmt"

	"rdmarun/host/scenario/compile"
)

// shadow remembers what a name means around a block and returns what brings it back.
func (r *caseRun) shadow(name string) (restore func()) {
	if name == "" {
		return func() {}
	}
	before, had := r.env[name]
	return func() {
		if had {
			r.env[name] = before
		} else {
			delete(r.env, name)
		}
	}
}

func (r *caseRun) use(ctx context.Context, step *compile.Step, use *compile.Use) error {
	values := make([]any, len(use.With))
	for i, parameter := range use.With {
		value, err := parameter.Value.Get(r.env)
		if err != nil {
			return r.failed(step, "", "use "+use.Fragment, err)
		}
		values[i] = value
	}
	for i, parameter := range use.With {
		defer r.shadow(parameter.Name)()
		r.env[parameter.Name] = values[i]
	}
	if use.Fragment != "" {
		depth := len(r.uses)
		r.uses = append(r.uses[:depth:depth], step) // a branch may have the same beginning
		defer func() { r.uses = r.uses[:depth] }()
	}
	return r.list(ctx, use.Steps)
}

// used lists who uses the fragments around the current step, the innermost first.
func (r *caseRun) used() []string {
	if len(r.uses) == 0 {
		return nil
	}
	list := make([]string, 0, len(r.uses))
	for i := len(r.uses) - 1; i >= 0; i-- {
		step := r.uses[i]
		list = append(list, fmt.Sprintf("%s:%d (%s)", step.Span.File(), step.Span.Line, step.Action.(*compile.Use).Fragment))
	}
	return list
}
