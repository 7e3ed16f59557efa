package verb

import (
	"context"
	"time"
)

// runnerVerbs are the runner's own: they touch no role.
func runnerVerbs() []Verb {
	return []Verb{
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

func log(_ context.Context, call *Call) (Outcome, error) {
	role := ""
	if call.Role != nil {
		role = call.Role.Name
	}
	call.Lab.Output(role, call.Text("text"))
	return Outcome{}, nil
}

func sleep(ctx context.Context, call *Call) (Outcome, error) {
	return Outcome{}, call.Lab.Clock().Sleep(ctx, call.Duration("for"))
}
