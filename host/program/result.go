package program

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Outcome is how a program ended.
type Outcome int

// The outcomes.
const (
	// Exited is an end of its own, with an exit code.
	Exited Outcome = 1 + iota
	// Signaled is an end by a signal, which Stop did not send.
	Signaled
	// TimedOut is an end by Limits.Time.
	TimedOut
	// Stopped is an end by Stop, or by the end of the context of Start.
	Stopped
	// Failed is an end by Limits.Output, or by a failure of the system.
	Failed
)

// String is the name of the outcome in records.
func (o Outcome) String() string {
	switch o {
	case Exited:
		return "exited"
	case Signaled:
		return "signaled"
	case TimedOut:
		return "timed_out"
	case Stopped:
		return "stopped"
	case Failed:
		return "failed"
	}
	return fmt.Sprintf("outcome %d", int(o))
}

// Result is the end of a program.
type Result struct {
	Outcome Outcome
	// ExitCode is its exit code, and Signal the signal that ended it; one of them at most is not 0.
	ExitCode   int
	Signal     syscall.Signal
	CoreDumped bool
	Duration   time.Duration
	// Reason is a sentence; "" for exit code 0.
	Reason string
	// Left are processes that it left running and that were ended: "sleep (pid 12)".
	Left []string
}

// Done is closed when the program has ended, no process of it is left, and all lines were passed on.
func (p *Program) Done() <-chan struct{} { return p.done }

// Result is the end of the program, after Done.
func (p *Program) Result() Result {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.result
}

// Processes are the numbers of the program and of the processes that it started, as far as they run.
func (p *Program) Processes() []int {
	select {
	case <-p.done:
		return nil
	default:
		return descendants(p.supervisor.Process.Pid)
	}
}

// Signal sends a signal to the process group of the program.
func (p *Program) Signal(signal syscall.Signal) error {
	const last = 64 // SIGRTMAX
	if signal < 1 || signal > last {
		return fmt.Errorf("signal program of %s: invalid signal %d: want 1 to %d", p.config.Name, int(signal), last)
	}
	if p.isDone() || p.send(order{Signal: signal}) != nil {
		return fmt.Errorf("signal program of %s: %w: it has ended", p.config.Name, unix.ESRCH)
	}
	return nil
}

// Stop ends the program: SIGTERM to its process group, and after Limits.Grace, or when ctx ends, SIGKILL to all its
// processes.  It returns when no process is left.
func (p *Program) Stop(ctx context.Context) Result {
	p.end(Stopped, p.config.Limits.Grace)
	select {
	case <-p.done:
	case <-ctx.Done():
		p.end(Stopped, 0)
		<-p.done
	}
	return p.Result()
}

func (p *Program) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end has the supervisor end the program, for that reason unless there is one.
func (p *Program) end(reason Outcome, grace time.Duration) {
	if p.isDone() {
		return
	}
	p.mutex.Lock()
	if p.reason == 0 {
		p.reason = reason
	}
	p.mutex.Unlock()
	_ = p.send(order{Stop: true, Grace: grace})
	// A supervisor that does not answer is killed, and the program with it.
	time.AfterFunc(grace+endingTime, func() { _ = p.supervisor.Process.Kill() })
}

// sendTime bounds how long the supervisor may take to read an order.
const sendTime = time.Second

// send gives the supervisor an order.
func (p *Program) send(next order) error {
	p.sending.Lock()
	defer p.sending.Unlock()
	_ = p.control.SetWriteDeadline(time.Now().Add(sendTime))
	return json.NewEncoder(p.control).Encode(next)
}

// outcome is the result, of what the supervisor reported; nil: it could not.  It holds the mutex.
func (p *Program) outcome(ended *ending) Result {
	if ended == nil {
		return Result{Outcome: Failed, Reason: "its supervisor ended early, and the program was killed"}
	}
	result := Result{Duration: ended.Duration, Left: ended.Left}
	if ended.More > 0 {
		result.Left = append(result.Left, fmt.Sprintf("%d more", ended.More))
	}
	status := ended.Status
	if len(ended.Alive) > 0 {
		result.Outcome = Failed
		result.Reason = "processes do not end, though they got SIGKILL: " + strings.Join(ended.Alive, ", ")
		return result
	}
	how := ""
	switch {
	case status.Signaled():
		result.Outcome, result.Signal, result.CoreDumped = Signaled, status.Signal(), status.CoreDump()
		how = "it was killed by " + signalName(status.Signal())
		if result.CoreDumped {
			how += ", and dumped core"
		}
	default:
		result.Outcome, result.ExitCode = Exited, status.ExitStatus()
		if result.ExitCode != 0 {
			how = fmt.Sprintf("it exited with code %d", result.ExitCode)
		}
	}
	why := ""
	switch {
	case p.full: // what it printed is not complete, also when it ended by itself
		result.Outcome = Failed
		why = fmt.Sprintf("it printed more than %d bytes", p.config.Limits.Output)
	case ended.Stopped && p.reason == TimedOut:
		result.Outcome = TimedOut
		why = fmt.Sprintf("it ran for more than %v", p.config.Limits.Time)
	case ended.Stopped:
		result.Outcome = Stopped
		why = "it was stopped"
	default:
		result.Reason = how
		return result
	}
	result.Reason = why
	if how != "" {
		result.Reason += ": " + how
	}
	return result
}

// signalName is SIGSEGV, or "signal 34".
func signalName(signal syscall.Signal) string {
	if name := unix.SignalName(signal); name != "" {
		return name
	}
	return fmt.Sprintf("signal %d", int(signal))
}
