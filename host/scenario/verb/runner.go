package verb

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"time"

	"rdmarun/host/guest"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/testbed"
)

// runnerVerbs are those of the runner itself, which work on no role.
var runnerVerbs = []Verb{
	ask("wait_listen", "", "Wait until a role listens for connection requests: its guest, or a branch beside this one.",
		waitListen).roleless().scalar("role"),
	act("assert", "", "Fail unless a condition holds.", assert).roleless().scalar("that"),
	act("log", "", "Print a line.",
		func(_ context.Context, call *Call, args *struct {
			Text string `arg:"text,required,message" doc:"the line"`
		}) error {
			role := ""
			if call.Role != nil {
				role = call.Role.Name
			}
			call.Testbed.Output(role, args.Text)
			return nil
		}).roleless().scalar("text"),
	act("sleep", "", "Let time pass.  Waiting for an event or a completion is nearly always better.",
		func(ctx context.Context, call *Call, args *struct {
			For time.Duration `arg:"for,required" max:"24h" doc:"how long"`
		}) (err error) {
			call.Testbed.Unlocked(func() { err = call.Testbed.Clock().Sleep(ctx, args.For) })
			return err
		}).roleless().scalar("for"),
}

func assert(_ context.Context, _ *Call, args *struct {
	That    ConditionValue   `arg:"that,required" doc:"the condition"`
	Message Optional[string] `arg:"message,message" doc:"what is wrong when it does not hold"`
}) error {
	if args.That.Holds {
		return nil
	}
	got := "false"
	if len(args.That.Operands) > 0 {
		got += ": " + strings.Join(args.That.Operands, ", ")
	}
	return &testbed.Failure{What: args.Message.Or("the condition does not hold"), Expected: args.That.Text, Got: got}
}

// listeningAt is where a role listens.
type listeningAt struct {
	Port    uint16 `result:"port,varies" doc:"where it listens"`
	Address string `result:"address,varies" doc:"and on which address; 0.0.0.0 or :: is any"`
	at      netip.AddrPort
}

func (l listeningAt) summary() string { return l.at.String() }

func waitListen(ctx context.Context, call *Call, args *struct {
	Role *testbed.Role `arg:"role,required" doc:"who is to listen"`
	Port uint16        `arg:"port" min:"1" doc:"where; without it on any port"`
	within
}) (listeningAt, error) {
	waiting, cancel := call.Testbed.Clock().WithTimeout(ctx, args.Within)
	defer cancel()
	at, err := args.Role.AwaitListener(waiting, args.Port)
	var failure *testbed.Failure
	if errors.As(err, &failure) && failure.Absent {
		failure.Expected += fmt.Sprintf(" within %s", args.Within)
	}
	return listeningAt{at.Port(), at.Addr().String(), at}, err
}

// StepVerb describes and runs a step that is not a verb of the language but for its own keys next to it: "guest start",
// "guest run", "guest wait", "guest stop", "guest call" and "barrier".  It is nil for any other name.
func StepVerb(name string) *Verb { return stepVerbs()[name] }

var stepVerbs = sync.OnceValue(func() map[string]*Verb {
	byName := make(map[string]*Verb)
	for _, row := range []Verb{
		act("guest start", "", "Start the guest of a role.",
			func(ctx context.Context, call *Call, args *guestArguments) error {
				return call.Role.Guest().Start(ctx, args.Args, args.Input)
			}),
		ask("guest run", "", "Start the guest of a role and wait for its end.",
			func(ctx context.Context, call *Call, args *struct {
				guestArguments
				guestWait
			}) (guestEnd, error) {
				if err := call.Role.Guest().Start(ctx, args.Args, args.Input); err != nil {
					return guestEnd{}, err
				}
				return args.end(ctx, call, call.Role.Guest().Wait)
			}),
		ask("guest wait", "", "Wait for the end of the guest of a role.",
			func(ctx context.Context, call *Call, args *guestWait) (guestEnd, error) {
				return args.end(ctx, call, call.Role.Guest().Wait)
			}),
		ask("guest stop", "", "Stop the guest of a role.",
			func(ctx context.Context, call *Call, args *guestWait) (guestEnd, error) {
				end, err := args.end(ctx, call, call.Role.Guest().Stop)
				// a step that stops a guest accepts any end
				call.Outcome.NoDefaults = end.Outcome == "stopped" || end.Exit == guest.CodeStopped
				return end, err
			}),
		ask("guest call", "", "Call a function of a guest that waits at a barrier.", callGuest),
		act("barrier", "", "Wait until everyone is there.", func(ctx context.Context, call *Call, args *struct {
			Gathering testbed.Gathering `arg:"gathering" doc:"who meets, and where"`
			within
		}) error {
			waiting, cancel := call.Testbed.Clock().WithTimeout(ctx, args.Within)
			defer cancel()
			return call.Testbed.Barrier(waiting, args.Gathering, call.Meet)
		}).roleless().dividing(),
	} {
		row.describe(&row)
		byName[row.Name] = &row
	}
	return byName
})

type guestArguments struct {
	Args  []string           `arg:"args" doc:"what the program is given"`
	Input testbed.GuestInput `arg:"input" doc:"what it reads"`
}

// guestWait bounds a step that waits for a guest's end.  The guest's own limit of time is shorter unless that was
// raised.
type guestWait struct {
	Within time.Duration `arg:"within" default:"2m" doc:"how long to wait"`
}

// guestEnd is how a guest ended.
type guestEnd struct {
	Exit    int    `result:"exit" default:"0" doc:"exit code"`
	Outcome string `result:"outcome" words:"exited|trapped|timed_out|stopped|failed" doc:"how it ended"`
	Trap    string `result:"trap" doc:"why it trapped, \"\" when it did not"`
}

func (e guestEnd) summary() string { return fmt.Sprintf("%s, exit code %d", e.Outcome, e.Exit) }

// end waits for the end of a guest.
func (w *guestWait) end(
	ctx context.Context, call *Call, wait func(context.Context) (testbed.GuestResult, error),
) (guestEnd, error) {
	var result testbed.GuestResult
	late := &testbed.Failure{What: "the guest did not end", Expected: "its end within " + quantity.Time(w.Within)}
	err := (&within{w.Within}).awaitLocked(ctx, call, func(ctx context.Context) (err error) {
		result, err = wait(ctx)
		if err != nil {
			late.Got = "it still runs" + call.Role.Guest().Where()
		}
		return err
	}, late)
	if err != nil {
		return guestEnd{}, err
	}
	call.Outcome.Hint = result.Reason + result.Trace
	end := guestEnd{Exit: result.Exit, Outcome: result.Outcome}
	if result.Outcome == "trapped" {
		end.Trap = result.Reason
	}
	return end, nil
}

// Invocation is a call of a guest's function.
type Invocation struct {
	Function string
	// Values are the arguments as the scenario has them, Words as the function takes them.
	Values []any
	Words  []uint64
	// Narrow means that the result has 32 bits.
	Narrow bool
}

// String is the call as C writes it.
func (i Invocation) String() string {
	texts := make([]string, len(i.Values))
	for n, value := range i.Values {
		texts[n] = fmt.Sprint(value)
	}
	return i.Function + "(" + strings.Join(texts, ", ") + ")"
}

// returned is what a function has returned, if anything.
type returned struct {
	Result Optional[int] `result:"result" doc:"what it returned, with a sign"`
}

func (r returned) summary() string {
	if !r.Result.Given {
		return ""
	}
	return fmt.Sprintf("result %d", r.Result.Value)
}

func callGuest(ctx context.Context, call *Call, args *struct {
	Function Invocation `arg:"function" doc:"the function with its arguments"`
	within
}) (returned, error) {
	var results []uint64
	err := args.awaitLocked(ctx, call, func(ctx context.Context) (err error) {
		results, err = call.Role.Guest().Call(ctx, args.Function.Function, args.Function.Words)
		return err
	}, &testbed.Failure{
		What: "the call has no end", Expected: "its end",
		Hint: "a guest takes calls while it waits at a barrier (rdma.barrier)",
	})
	switch {
	case err != nil || len(results) == 0:
		return returned{}, err
	case args.Function.Narrow:
		return returned{some(int(int32(results[0])))}, nil
	}
	return returned{some(int(results[0]))}, nil
}
