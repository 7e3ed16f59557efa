package guest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"rdmarun/rdmacore"
)

// Outcome is how a guest ended.
type Outcome int

const (
	Exited   Outcome = iota // by itself, with an exit code
	Trapped                 // it did what WebAssembly forbids
	TimedOut                // it exceeded its time limit
	Stopped                 // it was stopped, by Stop or by the end of its context
	Failed                  // it could not be started, or not all of it could be freed
)

func (o Outcome) String() string {
	return [...]string{"exited", "trapped", "timed out", "stopped", "failed"}[o]
}

// The exit codes of a guest that has none of its own; those of timeout(1) and of a shell for SIGTERM where
// there is one.
const (
	codeFailed   = 4
	codeTimedOut = 124
	codeTrapped  = 125
	codeStopped  = 143
)

// Result is how a guest ended and what became of what it had.
type Result struct {
	Outcome Outcome
	// ExitCode is the guest's own when it exited (255 for one above), else 125 (trapped), 124 (timed
	// out), 143 (stopped) or 4 (failed).
	ExitCode int
	// Err is nil for a guest that exited with 0, else what happened, in a sentence.
	Err      error
	Duration time.Duration
	// Freed is what the guest left behind and the host freed.
	Freed rdmacore.Live
}

// OK says that the guest exited with 0 and nothing went wrong.
func (r Result) OK() bool { return r.Outcome == Exited && r.ExitCode == 0 && r.Err == nil }

// TrapError is a trap: what WebAssembly forbids, and where the guest did it.
type TrapError struct {
	Reason string   // "out of bounds memory access"
	Stack  []string // the guest's functions, innermost first
}

func (e *TrapError) Error() string {
	text := "the guest trapped: " + e.Reason
	if len(e.Stack) > 0 {
		text += "\n  in " + strings.Join(e.Stack, "\n  by ")
	}
	return text
}

// trapError reads wazero's account of a trap.
func trapError(err error) *TrapError {
	const stackTitle = "wasm stack trace:"
	reason, stack, _ := strings.Cut(err.Error(), "\n"+stackTitle)
	e := &TrapError{Reason: strings.TrimPrefix(reason, "wasm error: ")}
	for _, line := range strings.Split(stack, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			e.Stack = append(e.Stack, line)
		}
	}
	return e
}

var (
	errTimeLimit = errors.New("the guest exceeded its time limit")
	errStopped   = errors.New("the guest was asked to stop and did not end in time")
)

func exitedError(code int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("the guest exited with code %d", code)
}
