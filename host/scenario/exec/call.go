package exec

import (
	"context"
	"maps"
	"slices"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// call runs a verb and compares its result with the expectations.
func (r *caseRun) call(ctx context.Context, step *compile.Step, action *compile.Call) error {
	r.count()
	name, role, err := r.enterRole(action.Role)
	if err != nil {
		return r.failed(step, name, action.Verb.Name, err)
	}
	arguments, err := r.evaluate(r.history.spare(), action.Arguments)
	if err != nil {
		return r.failed(step, name, action.Verb.Name, err)
	}
	call := &r.running
	*call = verb.Call{Verb: action.Verb, Testbed: r.testbed, Role: role, Arguments: arguments}
	if !action.None { // where nothing is to come, a longer wait would claim more
		r.stretchWithin(call)
	}
	if action.Verb.Measures {
		advance := r.advances.begin("", 0)
		defer r.advances.end(advance)
		call.Advance = func(what string, at, of int) { r.advances.part(advance, what, at, of) }
		r.measure(step, call)
	}
	m := moment{at: r.now(), role: name, step: step, operation: action.Verb.Name, verb: action.Verb, arguments: arguments}
	m.number = r.packets.begin(step, role, m.operation)
	m.returned = action.Verb.Run(ctx, call)
	m.took = r.since(m.at)
	r.packets.end(role)
	outcome := &call.Outcome
	switch {
	case ctx.Err() != nil && m.returned != nil:
		m.err = context.Cause(ctx)
	case action.None:
		m.err = judgeNone(outcome, m.returned)
	case action.Any:
		m.err = judgeAny(outcome, m.returned)
	default:
		m.err = r.judge(action, outcome, m.returned)
	}
	if m.err != nil && ctx.Err() == nil && testbed.OutOfFiles(m.returned) {
		// Whatever was expected, the call could not give an answer.
		m.err = &testbed.EnvironmentError{What: action.Verb.Name, Err: m.returned}
	}
	if m.err == nil {
		for _, buffer := range outcome.Buffers {
			r.refresh(buffer)
		}
		m.err = r.name(action.As, name, action.Verb, outcome, m.took)
	}
	if step.IgnoreLeftovers {
		ignoreLeftovers(call)
	}
	m.fields, m.outcome = outcome.Fields, outcome.Summary
	return r.conclude(&m)
}

// conclude notes an action that has run, in the history and for outputs; its error is the step's.
func (r *caseRun) conclude(m *moment) error {
	r.history.add(*m)
	if r.wantSteps {
		r.writeStep(m)
	}
	if m.err == nil {
		return nil
	}
	return r.failed(m.step, m.role, m.operation, m.err)
}

// count counts an action.
func (r *caseRun) count() {
	r.steps++
	r.ended.Add(1)
}

// enterRole finds the role of a step, nil for none, and shows expressions what an instance has made.
func (r *caseRun) enterRole(value *compile.Value) (name string, role *testbed.Role, err error) {
	if value == nil {
		return "", nil, nil
	}
	known, err := value.Get(r.env)
	if err != nil {
		return "", nil, err
	}
	name = known.(string)
	role, err = r.testbed.Role(name)
	if own := r.owned[name]; own != nil && err == nil {
		maps.Copy(r.env, own)
		r.env["index"] = role.Index
	}
	return name, role, err
}

// evaluate computes arguments; room may be used for the list.
func (r *caseRun) evaluate(room []any, values []*compile.Value) ([]any, error) {
	arguments := slices.Grow(room[:0], len(values))[:len(values)]
	clear(arguments)
	for i, value := range values {
		if value == nil {
			continue
		}
		var err error
		if arguments[i], err = value.Get(r.env); err != nil {
			return nil, err
		}
	}
	return arguments, nil
}

// within is a limit on the provider's clock, or another one where the step has none.
func (r *caseRun) within(value *compile.Value, otherwise time.Duration) (time.Duration, error) {
	if value == nil {
		return r.onClock(otherwise), nil
	}
	known, err := value.Get(r.env)
	if err != nil {
		return 0, err
	}
	return r.onClock(known.(time.Duration)), nil
}

// name gives what a step has made, and its result, the name of its `as`.
func (r *caseRun) name(as compile.Name, role string, v *verb.Verb, outcome *verb.Outcome, took instant) error {
	if as.Word == "" {
		return nil
	}
	name, index, err := as.Get(r.env)
	if err != nil {
		return err
	}
	if outcome.Made != nil {
		outcome.Made.Bind(name)
	}
	value := outcome.Record
	if value == nil {
		value = make(map[string]any, len(outcome.Fields))
		for i, field := range outcome.Fields {
			value[v.Results[i].Name] = field
		}
	}
	r.bind(role, as.Word, index, value, took)
	return nil
}

func ignoreLeftovers(call *verb.Call) {
	if made, is := call.Outcome.Made.(*testbed.Endpoint); is {
		made.Ignore()
	}
	if endpoint := call.Endpoint(); endpoint != nil {
		endpoint.Ignore()
	}
}
