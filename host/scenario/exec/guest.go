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

// guest starts a guest, waits for its end, or stops it.
func (r *caseRun) guest(ctx context.Context, step *compile.Step, action *compile.Guest) error {
	operation := "guest " + action.Operation
	return r.act(step, operation, action.Role, func(m *moment, role *testbed.Role) error {
		m.text = operation
		result, err := r.operate(ctx, role.Guest(), action)
		if err != nil || result == nil {
			return err
		}
		m.outcome = func() string { return fmt.Sprintf("%s, exit code %d", result.Outcome, result.Exit) }
		trap := ""
		if result.Outcome == "trapped" {
			trap = result.Reason
		}
		outcome := &verb.Outcome{
			Fields:     []any{result.Exit, result.Outcome, trap},
			NoDefaults: action.Operation == "stop" && result.Outcome == "stopped", // who stops a guest wants it gone, not well
		}
		err = r.judgeGuest(m, action.Expect, action.As, verb.GuestResult(), outcome)
		var expected *expectationError
		if errors.As(err, &expected) {
			expected.failure.Hint = result.Reason
		}
		return err
	})
}

// judgeGuest compares the result of a guest's step with the expectations, and gives it its name.
func (r *caseRun) judgeGuest(m *moment, expect []compile.Expectation, as compile.Name, v *verb.Verb, outcome *verb.Outcome) error {
	took := r.since(m.at)
	if err := r.judgeFields(expect, v, outcome); err != nil {
		return err
	}
	return r.name(as, m.role, v, outcome, took)
}

// operate does what the step says; a guest that has only been started has no result.
func (r *caseRun) operate(ctx context.Context, guest *testbed.Guest, action *compile.Guest) (*testbed.GuestResult, error) {
	if action.Operation == "start" || action.Operation == "run" {
		arguments, err := r.texts(action.Arguments)
		if err != nil {
			return nil, cause(ctx, err)
		}
		if err := guest.Start(ctx, arguments); err != nil || action.Operation == "start" {
			return nil, cause(ctx, err)
		}
	}
	within, err := r.within(action.Within, guestWithin)
	if err != nil {
		return nil, cause(ctx, err)
	}
	wait := guest.Wait
	if action.Operation == "stop" {
		wait = guest.Stop
	}
	var result testbed.GuestResult
	late, err := awaitGuest(ctx, within, func(ctx context.Context) (err error) {
		result, err = wait(ctx)
		return err
	})
	if late {
		return nil, &testbed.Failure{What: "the guest did not end", Expected: "its end within " + quantity.Time(within), Got: "it still runs"}
	}
	return &result, err
}

// awaitGuest waits for a guest; late tells that the limit was reached.  A guest acts on its own, so the limit is on the
// wall's clock.
func awaitGuest(ctx context.Context, limit time.Duration, wait func(context.Context) error) (late bool, err error) {
	waiting, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = wait(waiting)
	return ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded), cause(ctx, err)
}

// guestCall calls a function of a guest and compares what it returned.
func (r *caseRun) guestCall(ctx context.Context, step *compile.Step, action *compile.GuestCall) error {
	const operation = "guest call"
	return r.act(step, operation, action.Role, func(m *moment, role *testbed.Role) error {
		values, err := r.evaluate(nil, action.Arguments)
		if err != nil {
			return err
		}
		within, err := r.within(action.Within, verb.DefaultWithin)
		if err != nil {
			return err
		}
		words, arguments := make([]string, len(values)), make([]uint64, len(values))
		for i, value := range values {
			words[i], arguments[i] = fmt.Sprint(value), compile.Bits(value)
			if i < len(action.Signature.Params) && action.Signature.Params[i] == 'i' {
				arguments[i] = uint64(uint32(arguments[i]))
			}
		}
		m.text = fmt.Sprintf("%s %s(%s)", operation, action.Function, strings.Join(words, ", "))
		var results []uint64
		late, err := awaitGuest(ctx, within, func(ctx context.Context) (err error) {
			results, err = role.Guest().Call(ctx, action.Function, arguments)
			return err
		})
		switch {
		case late:
			return &testbed.Failure{
				What: "the call has no end", Expected: "its end within " + quantity.Time(within), Got: err.Error(),
				Hint: "a guest takes calls while it waits at a barrier (rdma.barrier)",
			}
		case err != nil || len(results) == 0:
			return err
		}
		result := int(results[0])
		if action.Signature.Results == "i" {
			result = int(int32(results[0]))
		}
		m.outcome = func() string { return fmt.Sprint(result) }
		err = r.judgeGuest(m, action.Expect, action.As, verb.GuestCallResult(), &verb.Outcome{Fields: []any{result}})
		var expected *expectationError
		if errors.As(err, &expected) { // a function has one result, and messages do without its name
			expected.failure.Expected = strings.TrimPrefix(expected.failure.Expected, "result ")
			expected.failure.Got = strings.TrimPrefix(expected.failure.Got, "result ")
		}
		return err
	})
}
