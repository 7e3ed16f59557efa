package verb

import (
	"context"
	"strings"
	"time"

	"rdmarun/host/scenario/lab"
)

// runnerVerbs are the runner's own: they touch no role.
func runnerVerbs() []Verb {
	return []Verb{
		{
			Name: "assert", Roleless: true, Scalar: "that", Run: assert,
			Doc: "Fail unless a condition holds.",
			Arguments: []Argument{
				{Name: "that", Type: Condition, Required: true, Doc: "the condition"},
				{Name: "message", Type: Text, Doc: "what is wrong when it does not hold"}},
		},
		{
			Name: "log", Roleless: true, Scalar: "text", Run: log,
			Doc:       "Print a line.",
			Arguments: []Argument{{Name: "text", Type: Text, Required: true, Doc: "the line"}},
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
