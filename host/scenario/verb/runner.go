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
	ask("wait_listen", "", "Wait until a role listens for connection requests: its guest, or a parallel branch.",
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
	Message optional[string] `arg:"message,message" doc:"the error text if the condition is false"`
}) error {
	if args.That.Holds {
		return nil
	}
	got := "false"
	if len(args.That.Operands) > 0 {
		got += ": " + strings.Join(args.That.Operands, ", ")
	}
	return &testbed.Failure{What: args.Message.or("the condition does not hold"), Expected: args.That.Text, Got: got}
}

// listeningAt is where a role listens.
type listeningAt struct {
	Port    uint16 `result:"port,varies" doc:"the port where it listens"`
	Address string `result:"address,varies" doc:"the address where it listens; 0.0.0.0 or :: is any"`
	at      netip.AddrPort
}

func (l listeningAt) summary() string { return l.at.String() }

func waitListen(ctx context.Context, call *Call, args *struct {
	Role *testbed.Role `arg:"role,required" doc:"the role that must listen"`
	Port uint16        `arg:"port" min:"1" doc:"the port (default: any)"`
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

// StepVerb describes and runs a step that is not a verb of the language, but has keys of its own. They are "guest
// start" and the other steps of guests, "program start" and those of programs, and "barrier". It is nil for any other
// name.
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
				endWait
			}) (guestEnd, error) {
				if err := call.Role.Guest().Start(ctx, args.Args, args.Input); err != nil {
					return guestEnd{}, err
				}
				return awaitGuest(ctx, call, &args.endWait, call.Role.Guest().Wait)
			}),
		ask("guest wait", "", "Wait for the end of the guest of a role.",
			func(ctx context.Context, call *Call, args *endWait) (guestEnd, error) {
				return awaitGuest(ctx, call, args, call.Role.Guest().Wait)
			}),
		ask("guest stop", "", "Stop the guest of a role.",
			func(ctx context.Context, call *Call, args *endWait) (guestEnd, error) {
				end, err := awaitGuest(ctx, call, args, call.Role.Guest().Stop)
				// a step that stops a guest accepts any end
				call.Outcome.NoDefaults = end.Outcome == "stopped" || end.Exit == guest.CodeStopped
				return end, err
			}),
		ask("guest call", "", "Call a function of a guest that waits at a barrier.", callGuest),
		act("program start", "", "Start the program of a role.",
			func(ctx context.Context, call *Call, args *programArguments) error {
				return call.Role.Program().Start(ctx, args.Command, args.Input)
			}),
		ask("program run", "", "Start the program of a role and wait for its end.",
			func(ctx context.Context, call *Call, args *struct {
				programArguments
				endWait
			}) (programEnd, error) {
				if err := call.Role.Program().Start(ctx, args.Command, args.Input); err != nil {
					return programEnd{}, err
				}
				return awaitProgram(ctx, call, &args.endWait, call.Role.Program().Wait)
			}),
		ask("program wait", "", "Wait for the end of the program of a role.",
			func(ctx context.Context, call *Call, args *endWait) (programEnd, error) {
				return awaitProgram(ctx, call, args, call.Role.Program().Wait)
			}),
		ask("program stop", "", "Stop the program of a role: SIGTERM, and SIGKILL 2 s later.",
			func(ctx context.Context, call *Call, args *endWait) (programEnd, error) {
				end, err := awaitProgram(ctx, call, args, call.Role.Program().Stop)
				call.Outcome.NoDefaults = true // a step that stops a program accepts any end
				return end, err
			}),
		act("program signal", "", "Send a signal to the program of a role.",
			func(_ context.Context, call *Call, args *struct {
				Signal string `arg:"signal,required" doc:"its name: SIGUSR1, or USR1"`
			}) error {
				return call.Role.Program().Signal(args.Signal)
			}),
		act("barrier", "", "Wait until everyone is there.", func(ctx context.Context, call *Call, args *struct {
			Gathering testbed.Gathering `arg:"gathering" doc:"the branches that meet, and where"`
			within
		}) error {
			waiting, cancel := call.Testbed.Clock().WithTimeout(ctx, args.Within)
			defer cancel()
			return call.Testbed.Barrier(waiting, args.Gathering, call.Meet)
		}).roleless().split(),
	} {
		row.describe(&row)
		byName[row.Name] = &row
	}
	return byName
})

type guestArguments struct {
	Args  []string      `arg:"args" doc:"what the program is given"`
	Input testbed.Input `arg:"input" doc:"what it reads"`
}

// endWait bounds a step that waits for the end of a guest or a program.  Their own limit of time is shorter unless that
// was raised.
type endWait struct {
	Within time.Duration `arg:"within" default:"2m" doc:"how long to wait"`
}

// awaitEnd waits for the end of a guest or a program (what).
func awaitEnd[R any](
	ctx context.Context, call *Call, w *endWait, what string, wait func(context.Context) (R, error),
) (result R, err error) {
	late := &testbed.Failure{
		What: "the " + what + " did not end", Expected: "its end within " + quantity.Time(w.Within),
	}
	err = (&within{w.Within}).awaitLocked(ctx, call, func(ctx context.Context) (err error) {
		if result, err = wait(ctx); err != nil {
			late.Got = "it still runs"
			if p := call.Role.Program(); p != nil {
				late.Got += p.LastLine()
			}
		}
		return err
	}, late)
	return result, err
}

// guestEnd is how a guest ended.
type guestEnd struct {
	Exit    int    `result:"exit" default:"0" doc:"exit code"`
	Outcome string `result:"outcome" words:"exited|trapped|timed_out|stopped|failed" doc:"how it ended"`
	Trap    string `result:"trap" doc:"kind of a trap, as WebAssembly names it; \"\" when it did not trap"`
}

func (e guestEnd) summary() string { return fmt.Sprintf("%s, exit code %d", e.Outcome, e.Exit) }

// awaitGuest waits for the end of a guest.
func awaitGuest(
	ctx context.Context, call *Call, w *endWait, wait func(context.Context) (testbed.ExecutableEnd, error),
) (guestEnd, error) {
	result, err := awaitEnd(ctx, call, w, "guest", wait)
	if err != nil {
		return guestEnd{}, err
	}
	call.Outcome.Hint = result.Reason + result.Trace
	return guestEnd{Exit: result.Exit, Outcome: result.Outcome, Trap: result.Trap}, nil
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
	Result optional[int] `result:"result" doc:"what it returned, with a sign"`
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
