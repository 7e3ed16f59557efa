package testbed

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// executable plays a role by itself: a guest or a program.
type executable interface {
	// what is what messages call it.
	what() string
	// done is closed when it has ended; nil before it was started.
	done() <-chan struct{}
	// ending is how long its end, which has begun, may take; 0 if it is known, or did not begin.  If a step of a peer
	// has failed, that may be a consequence of its end.
	ending(failed bool) time.Duration
	// stop ends it, without the lock of the testbed.
	stop(ctx context.Context)
	// where is the place of one that runs, as the end of a sentence; "" for an unknown one.  A guest may end by that.
	where() string
	// end is how it ended.  The testbed is locked.
	end() ExecutableEnd
	// state is what steps know of it.
	state() *executableState
}

// executableState is what steps know of a guest or a program.
type executableState struct {
	// seen is set once a step has looked at how it ended.
	seen bool
	// kept is set for one of a fixture, for which no step of the case waits.
	kept bool
}

func (s *executableState) state() *executableState { return s }

// ExecutableEnd is how a guest or a program ended, in the words of scenarios.
type ExecutableEnd struct {
	// What is "guest" or "program".
	Role, What string
	Outcome    string
	Exit       int
	// Reason explains every end but exit code 0.  Trace has a line for each function on the stack of a guest that
	// trapped, or for each of the last calls of a program.
	Reason, Trace string
	Trap          string // the kind of a trap, which Reason begins with
}

// cause is the end as the cause of a step's failure; nil for exit code 0, and for one that a step has asked for.
func (e ExecutableEnd) cause() *ExecutableEnd {
	if e.Exit == 0 || e.Outcome == "stopped" {
		return nil
	}
	return &e
}

// executable is the role's guest or program; nil for a role that steps drive.
func (r *Role) executable() executable {
	switch {
	case r.guest != nil:
		return r.guest
	case r.program != nil:
		return r.program
	}
	return nil
}

// running reports whether a executable was started and has not ended.
func running(p executable) bool {
	if p == nil {
		return false
	}
	ended := p.done()
	if ended == nil {
		return false
	}
	select {
	case <-ended:
		return false
	default:
		return true
	}
}

// awaitEnd waits until the guest or the program of the role has ended.
func (r *Role) awaitEnd(ctx context.Context) error {
	if err := r.notStarted(); err != nil {
		return err
	}
	var late error
	done := r.executable().done()
	r.testbed.Unlocked(func() { late = r.testbed.Clock().Await(ctx, done, nil) })
	if late != nil {
		return ctx.Err()
	}
	return nil
}

// stopAndAwait ends the guest or the program of the role.
func (r *Role) stopAndAwait(ctx context.Context) error {
	if err := r.notStarted(); err != nil {
		return err
	}
	r.testbed.Unlocked(func() { r.executable().stop(ctx) })
	return r.awaitEnd(context.WithoutCancel(ctx)) // it has ended
}

// notStarted is a Failure before the guest or the program was started.
func (r *Role) notStarted() error {
	e := r.executable()
	if e.done() != nil {
		return nil
	}
	return &Failure{
		What: fmt.Sprintf("the %s of role %s was not started", e.what(), r.Name),
		Hint: fmt.Sprintf("a step `%s: start` comes first", e.what()),
	}
}

// unasked is a Failure of a step that starts a guest or a program again, which has failed, and no step has checked its
// end.
func unasked(r *Role) error {
	e := r.executable()
	if e.done() == nil || e.state().seen {
		return nil
	}
	end := e.end()
	if end.Exit == 0 {
		return nil
	}
	failure := &Failure{
		What: fmt.Sprintf(
			"the %s of role %s had ended with exit code %d (%s)", end.What, r.Name, end.Exit, end.Outcome,
		),
		Hint: fmt.Sprintf("a step `%s: wait` says which end is expected. %s", end.What, end.Reason),
	}
	if r.guest != nil {
		failure.Ended = end.cause()
	}
	return failure
}

// stillRuns names a guest or a program that runs.
func stillRuns(r *Role, p executable) string {
	return fmt.Sprintf("%s: its %s still runs", r.Name, p.what())
}

// leftover describes the guest or the program of a role that no step has waited for; "" for none.
func (r *Role) leftover() string {
	p := r.executable()
	state := p.state()
	switch {
	case p.done() == nil || state.seen, state.kept && running(p):
		return ""
	case running(p):
		return stillRuns(r, p) + fmt.Sprintf(" (%[1]s: wait, or %[1]s: stop)", p.what())
	}
	end := p.end()
	if end.Exit == 0 {
		return ""
	}
	return fmt.Sprintf(
		"%s: its %s ended with exit code %d (%s) and no step asked", r.Name, end.What, end.Exit, end.Outcome,
	)
}

// AwaitEnding waits for the guests and programs that are about to end. Peers see first that their objects are freed. So
// the step of a peer may have failed before the end is known, which is the cause.
func (t *Testbed) AwaitEnding(failed bool) {
	began := time.Now()
	for _, role := range t.roles {
		p := role.executable()
		if p == nil {
			continue
		}
		if within := p.ending(failed); within > 0 {
			ctx, cancel := context.WithDeadline(context.Background(), began.Add(within)) // for all together
			// Without its end, the failure has one cause less.
			_ = role.awaitEnd(ctx)
			cancel()
		}
	}
}

// FailedExecutables are the ends of the guests and programs that no step has asked about, but of those with exit code
// 0.
func (t *Testbed) FailedExecutables() []ExecutableEnd {
	var failed []ExecutableEnd
	for _, role := range t.roles {
		if p := role.executable(); p != nil && p.done() != nil && !p.state().seen && !running(p) {
			if end := p.end(); end.Exit != 0 {
				failed = append(failed, end)
			}
		}
	}
	return failed
}

// RunningExecutables names the guests and programs that still run, with their places: of many, the first.  A script
// that computes ends by that.
func (t *Testbed) RunningExecutables() []string {
	var found []string
	more, kinds := 0, make(map[string]bool)
	for _, role := range t.roles {
		p := role.executable()
		if !running(p) {
			continue
		}
		kinds[p.what()+"s"] = true
		if len(found) == maxNamed {
			more++
			continue
		}
		found = append(found, stillRuns(role, p)+p.where())
	}
	if more > 0 {
		names := strings.Join(slices.Sorted(maps.Keys(kinds)), " and ")
		found = append(found, fmt.Sprintf("and %d %s more", more, names))
	}
	return found
}

// KeepExecutables lets the guests and programs that run go on beyond the steps of the case: no step has to wait for
// them.
func (t *Testbed) KeepExecutables() {
	for _, role := range t.roles {
		if p := role.executable(); running(p) {
			p.state().kept = true
		}
	}
}

// stopExecutables ends all guests and programs at once: each has the same time to end by itself.  On a virtual clock,
// on which the caller acts, all are asked before one goes on.
func (t *Testbed) stopExecutables() {
	clock := t.Clock()
	var stopped []<-chan struct{}
	for _, role := range t.roles {
		if p := role.executable(); running(p) {
			stopped = append(stopped, clock.Launch(func() { p.stop(context.Background()) }))
		}
	}
	clock.Outside(func() {
		for _, each := range stopped {
			<-each
		}
	})
}
