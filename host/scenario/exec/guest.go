package exec

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// guestWithin bounds a step that waits for a guest when the scenario does not; the guest's own limit of
// time is shorter unless that was raised.
const guestWithin = 2 * time.Minute

// guest runs a step of a guest.
func (r *caseRun) guest(ctx context.Context, step *compile.Step, action *compile.Guest) error {
	r.count()
	name, err := r.enterRole(action.Role)
	text := "guest " + action.Operation
	if err != nil {
		return r.failed(step, name, text, err)
	}
	role, err := r.testbed.Role(name)
	if err != nil {
		return r.failed(step, name, text, err)
	}
	begin := r.now()
	result, err := r.operate(ctx, role.Guest(), action)
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	m := moment{at: begin, role: name, step: step, text: text, err: err}
	if err == nil && result != nil {
		m.outcome = func() string { return fmt.Sprintf("%s, exit code %d", result.Outcome, result.Exit) }
		m.err = r.judgeGuest(action, name, result, r.since(begin))
	}
	r.history.add(m)
	if r.wantSteps {
		r.writeStep(r.stepRecord(m, r.since(begin)))
	}
	if m.err != nil {
		return r.failed(step, name, text, m.err)
	}
	return nil
}

// operate does it; a guest that has only been started has no result.
func (r *caseRun) operate(ctx context.Context, guest *testbed.Guest, action *compile.Guest) (*testbed.GuestResult, error) {
	if action.Operation == "start" || action.Operation == "run" {
		values, err := r.evaluate(action.Arguments)
		if err != nil {
			return nil, err
		}
		arguments := make([]string, len(values))
		for i, value := range values {
			arguments[i] = value.(string)
		}
		if err := guest.Start(ctx, arguments); err != nil || action.Operation == "start" {
			return nil, err
		}
	}
	within, err := r.within(action.Within, guestWithin)
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	wait := guest.Wait
	if action.Operation == "stop" {
		wait = guest.Stop
	}
	var result testbed.GuestResult
	r.testbed.Unlocked(func() { r.testbed.Clock().Outside(func() { result, err = wait(waiting) }) })
	if err != nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil, &testbed.Failure{What: "the guest did not end", Expected: "its end within " + quantity.Time(within), Got: "it still runs"}
	}
	return &result, err
}

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

func (r *caseRun) judgeGuest(action *compile.Guest, role string, result *testbed.GuestResult, took instant) error {
	trap := ""
	if result.Outcome == "trapped" {
		trap = result.Reason
	}
	fields := []any{result.Exit, result.Outcome, trap}
	for i := range action.Expect {
		e := &action.Expect[i]
		if e.Default && action.Operation == "stop" && result.Outcome == "stopped" {
			continue // who stops a guest wants it gone, not well
		}
		ok, want, err := e.Check(r.env, fields[e.Index])
		if err != nil {
			return err
		}
		if !ok {
			got := e.Field + " " + e.Show(fields[e.Index])
			return &expectationError{e, &testbed.Failure{What: "wrong " + e.Field, Expected: e.Field + " " + want, Got: got, Hint: result.Reason}}
		}
	}
	if action.As.Word != "" {
		_, index, err := action.As.Get(r.env)
		if err != nil {
			return err
		}
		value := make(map[string]any, len(fields))
		for i, v := range verb.GuestResult().Results {
			value[v.Name] = fields[i]
		}
		r.bind(role, action.As.Word, index, value, took)
	}
	return nil
}

// guestCall calls a function of a guest and compares what it returned.
func (r *caseRun) guestCall(ctx context.Context, step *compile.Step, action *compile.GuestCall) error {
	r.count()
	const operation = "guest call"
	name, err := r.enterRole(action.Role)
	if err != nil {
		return r.failed(step, name, operation, err)
	}
	role, err := r.testbed.Role(name)
	if err != nil {
		return r.failed(step, name, operation, err)
	}
	values, err := r.evaluate(action.Arguments)
	if err != nil {
		return r.failed(step, name, operation, err)
	}
	within, err := r.within(action.Within, verb.DefaultWithin)
	if err != nil {
		return r.failed(step, name, operation, err)
	}
	words := make([]string, len(values))
	arguments := make([]uint64, len(values))
	for i, value := range values {
		words[i], arguments[i] = fmt.Sprint(value), compile.Bits(value)
		if i < len(action.Signature.Params) && action.Signature.Params[i] == 'i' {
			arguments[i] = uint64(uint32(arguments[i]))
		}
	}
	m := moment{at: r.now(), role: name, step: step, text: fmt.Sprintf("%s %s(%s)", operation, action.Function, strings.Join(words, ", "))}
	result, err := r.callGuest(ctx, role.Guest(), action, arguments, within)
	if m.err = err; err == nil && result != nil {
		m.outcome = func() string { return fmt.Sprint(*result) }
		m.err = r.judgeResult(action, name, *result, r.since(m.at))
	}
	r.history.add(m)
	if r.wantSteps {
		r.writeStep(r.stepRecord(m, r.since(m.at)))
	}
	if m.err != nil {
		return r.failed(step, name, operation, m.err)
	}
	return nil
}

// callGuest makes the call; a function may return nothing.
func (r *caseRun) callGuest(ctx context.Context, guest *testbed.Guest, action *compile.GuestCall, arguments []uint64, within time.Duration) (*int, error) {
	waiting, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var results []uint64
	var err error
	r.testbed.Unlocked(func() {
		r.testbed.Clock().Outside(func() { results, err = guest.Call(waiting, action.Function, arguments) })
	})
	switch {
	case ctx.Err() != nil && err != nil:
		return nil, context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, &testbed.Failure{
			What: "the call has no end", Expected: "its end within " + quantity.Time(within), Got: err.Error(),
			Hint: "a guest takes calls while it waits at a barrier (rdma.barrier)",
		}
	case err != nil || len(results) == 0:
		return nil, err
	}
	result := int(results[0])
	if action.Signature.Results == "i" {
		result = int(int32(results[0]))
	}
	return &result, nil
}

func (r *caseRun) judgeResult(action *compile.GuestCall, role string, result int, took instant) error {
	for i := range action.Expect {
		e := &action.Expect[i]
		ok, want, err := e.Check(r.env, result)
		if err != nil {
			return err
		}
		if !ok {
			return &expectationError{e, &testbed.Failure{What: "wrong result", Expected: want, Got: e.Show(result)}}
		}
	}
	if action.As.Word != "" {
		_, index, err := action.As.Get(r.env)
		if err != nil {
			return err
		}
		r.bind(role, action.As.Word, index, map[string]any{"result": result}, took)
	}
	return nil
}
