package verb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"rdmarun/host/scenario/lab"
)

// runnerVerbs are the runner's own: they do nothing to a role.
func runnerVerbs() []Verb {
	return []Verb{
		{
			Name: "wait_listen", Roleless: true, Scalar: "role", Waits: true, Yields: Value, Run: waitListen,
			Doc: "Wait until a role listens for connection requests: its guest, or a branch beside this one.",
			Arguments: []Argument{
				{Name: "role", Type: Role, Required: true, Doc: "who is to listen"},
				{Name: "port", Type: Integer, Min: 1, Max: 65535, Doc: "where; without it on any port"},
				within()},
			Results: []Result{
				{Name: "port", Type: Integer, Varies: true, Doc: "where it listens"},
				{Name: "address", Type: Text, Varies: true, Doc: "and on which address; 0.0.0.0 or :: is any"}},
		},
		{
			Name: "assert", Roleless: true, Scalar: "that", Run: assert,
			Doc: "Fail unless a condition holds.",
			Arguments: []Argument{
				{Name: "that", Type: Condition, Required: true, Doc: "the condition"},
				{Name: "message", Type: Text, Message: true, Doc: "what is wrong when it does not hold"}},
		},
		{
			Name: "log", Roleless: true, Scalar: "text", Run: log,
			Doc:       "Print a line.",
			Arguments: []Argument{{Name: "text", Type: Text, Message: true, Required: true, Doc: "the line"}},
		},
		{
			Name: "sleep", Roleless: true, Scalar: "for", Run: sleep,
			Doc:       "Let time pass.  Waiting for an event or a completion is nearly always better.",
			Arguments: []Argument{{Name: "for", Type: Duration, Required: true, Min: 0, Max: int64(24 * time.Hour), Doc: "how long"}},
		},
	}
}

func assert(_ context.Context, call *Call) (Outcome, error) {
	condition, _ := call.argument("that").(ConditionValue)
	if condition.Holds {
		return Outcome{}, nil
	}
	what := "the condition does not hold"
	if call.Has("message") {
		what = call.Text("message")
	}
	got := "false"
	if len(condition.Operands) > 0 {
		got += ": " + strings.Join(condition.Operands, ", ")
	}
	return Outcome{}, &lab.Failure{What: what, Expected: condition.Text, Got: got}
}

func waitListen(ctx context.Context, call *Call) (Outcome, error) {
	role, err := call.Lab.Role(call.Text("role"))
	if err != nil {
		return Outcome{}, err
	}
	waiting, cancel := call.Lab.Clock().WithTimeout(ctx, call.Duration("within"))
	defer cancel()
	at, err := role.AwaitListener(waiting, uint16(call.Integer("port")))
	var failure *lab.Failure
	if errors.As(err, &failure) && failure.Absent {
		failure.Expected += fmt.Sprintf(" within %s", call.Duration("within"))
	}
	if err != nil {
		return Outcome{}, err
	}
	return Outcome{Fields: []any{int(at.Port()), at.Addr().String()}, Summary: at.String}, nil
}

func log(_ context.Context, call *Call) (Outcome, error) {
	role := ""
	if call.Role != nil {
		role = call.Role.Name
	}
	call.Lab.Output(role, call.Text("text"))
	return Outcome{}, nil
}

func sleep(ctx context.Context, call *Call) (Outcome, error) {
	var err error
	call.Lab.Outside(func() { err = call.Lab.Clock().Sleep(ctx, call.Duration("for")) })
	return Outcome{}, err
}
