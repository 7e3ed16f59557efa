package exec

import (
	"context"
	"maps"
	"slices"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// call runs a verb and compares its result with the expectations.
func (r *caseRun) call(ctx context.Context, step *compile.Step, action *compile.Call) error {
	r.count()
	call := &r.running
	*call = verb.Call{Verb: action.Verb, Testbed: r.testbed}
	name, err := r.enterRole(action.Role)
	if err != nil {
		return r.failed(step, name, action.Verb.Name, err)
	}
	if name != "" {
		if call.Role, err = r.testbed.Role(name); err != nil {
			return r.failed(step, name, action.Verb.Name, err)
		}
	}
	if call.Arguments, err = r.evaluateInto(r.forgotten, action.Arguments); err != nil {
		return r.failed(step, name, action.Verb.Name, err)
	}
	if !action.None { // where nothing is to come, a longer wait would claim more
		r.stretchWithin(call)
	}
	if action.Verb.Measures {
		advance := r.advances.begin("", 0)
		defer r.advances.end(advance)
		call.Advance = func(what string, at, of int) { r.advances.part(advance, what, at, of) }
		r.measure(step, call)
	}
	begin := r.now()
	err = action.Verb.Run(ctx, call)
	outcome := &call.Outcome
	took, returned := r.since(begin), err
	switch {
	case ctx.Err() != nil && err != nil:
		err = context.Cause(ctx)
	case action.None:
		err = r.judgeNone(outcome, err)
	case action.Any:
		err = judgeAny(outcome, err)
	default:
		err = r.judge(action, outcome, err)
	}
	if err != nil && ctx.Err() == nil && testbed.OutOfFiles(returned) {
		// Whatever was expected, it was not asked.
		err = &testbed.EnvironmentError{What: action.Verb.Name, Err: returned}
	}
	if err == nil {
		err = r.take(action, name, outcome, took)
	}
	if step.IgnoreLeftovers {
		ignoreLeftovers(call)
	}
	m := moment{at: begin, role: name, step: step, verb: action.Verb, arguments: call.Arguments, outcome: outcome.Summary, err: err}
	r.forgotten = r.history.add(m)
	if r.wantSteps {
		step := r.stepRecord(m, took)
		step.Fields, step.Errno = returnedFields(action.Verb, outcome), returnedErrno(returned)
		r.writeStep(step)
	}
	if err != nil {
		return r.failed(step, name, action.Verb.Name, err)
	}
	return nil
}

// count counts an action.
func (r *caseRun) count() {
	r.steps++
	r.ended.Add(1)
}

// enterRole finds the role of a step, and shows expressions what an instance has made.
func (r *caseRun) enterRole(value *compile.Value) (string, error) {
	if value == nil {
		return "", nil
	}
	known, err := value.Get(r.env)
	if err != nil {
		return "", err
	}
	name := known.(string)
	if own := r.owned[name]; own != nil {
		maps.Copy(r.env, own)
		role, err := r.testbed.Role(name)
		if err != nil {
			return name, err
		}
		r.env["index"] = role.Index
	}
	return name, nil
}

func (r *caseRun) evaluate(values []*compile.Value) ([]any, error) {
	return r.evaluateInto(nil, values)
}

// evaluateInto is evaluate with room that may be used for the list.
func (r *caseRun) evaluateInto(room []any, values []*compile.Value) ([]any, error) {
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

// take gives what a step yields its names.
func (r *caseRun) take(action *compile.Call, role string, outcome *verb.Outcome, took instant) error {
	for _, buffer := range outcome.Buffers {
		r.refresh(buffer)
	}
	if action.As.Word == "" {
		return nil
	}
	name, index, err := action.As.Get(r.env)
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
			value[action.Verb.Results[i].Name] = field
		}
	}
	r.bind(role, action.As.Word, index, value, took)
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
