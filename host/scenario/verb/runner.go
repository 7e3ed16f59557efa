package verb

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"rdmarun/host/scenario/testbed"
)

// runnerVerbs are those of the runner itself, which work on no role.
func runnerVerbs() []Verb {
	return []Verb{
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
