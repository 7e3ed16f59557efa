package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
	"rdmarun/host/scenario/verb"
)

// outcomeOf is the outcome of the running step, which has ended with err.
func (r *caseRun) outcomeOf(err error) peer.Outcome {
	outcome := peer.Outcome{Bound: r.position.bound, Ignored: r.position.ignored}
	if err != nil {
		outcome.Failure = r.peerFailure(err)
	}
	return outcome
}

// work is what processes divide by roles: a call (remoteCall), or a loop with steps of one role (remoteLoop).
type work interface {
	base() *task
	// here runs it in its owner.  adds adds fields to its outcome, in addition to names and a failure.
	here(ctx context.Context) error
	adds(outcome *peer.Outcome, err error)

	// The methods below are for the other processes.
	peer.Messages
	// ownPart returns a function that runs this process's part of it. Meanwhile another goroutine waits for the
	// outcome, which ends the part. It is nil without a part.
	ownPart() func(context.Context)
	// binds reports whether it gives a result of a role a name, or an index in a list (index -1 is for a name).
	binds(role, name string, index int) bool
	// count is the number of its steps, from the number in the outcome.
	count(steps int) int
}

// task has the fields of both kinds of work.
type task struct {
	remote       *remote
	run          *caseRun
	step         *compile.Step
	role, action string
	// owner is the process that runs it; "" is this one.
	owner string
	// leaves is set when messages of it may be left in the mailbox.
	leaves bool
}

func (t *task) base() *task { return t }

// do runs work in its owner.  The owner sends the outcome to the other processes, and these wait for it.
func (o *remote) do(ctx context.Context, w work) (outcome peer.Outcome, err error) {
	t := w.base()
	r := t.run
	if t.leaves {
		defer func() { o.Mailbox.Forget(r.position.Key() + "/") }()
	}
	if t.owner != "" {
		return o.elsewhere(ctx, w)
	}
	p := &r.position
	p.sending, p.bound, p.ignored, p.sentParts, p.sendErr = true, nil, nil, 0, nil
	err = w.here(ctx)
	r.position.sending = false
	if ctx.Err() != nil {
		return outcome, err // the case ends, and its end is sent
	}
	outcome = r.outcomeOf(err)
	w.adds(&outcome, err)
	reporting := o.Report(&r.position.Position, r.position.sentParts > 0, outcome)
	if failed := cmp.Or(r.position.sendErr, reporting); failed != nil && err == nil {
		err = r.failed(t.step, t.role, t.action, &testbed.EnvironmentError{
			What: "send to the other processes", Err: failed,
		})
	}
	return outcome, err
}

// elsewhere waits for the outcome of another process's work, and runs this process's part of it.
func (o *remote) elsewhere(ctx context.Context, w work) (outcome peer.Outcome, err error) {
	t := w.base()
	r := t.run
	r.enter(t.role, r.roster.numbers[t.role])
	// This process awaits messages of processes that may wait for these steps.
	if err = o.EmptySteps.Flush(); err == nil {
		outcome, err = o.outcome(ctx, w)
	}
	r.steps += w.count(outcome.Steps)
	r.ended.Add(1)
	var ended *testbed.Failure
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &ended):
	case err != nil:
		err = &testbed.EnvironmentError{What: "wait for a step of role " + t.role, Err: err}
	case !outcome.Empty():
		err = r.take(outcome, t.owner, w.binds)
	}
	if err != nil {
		return outcome, r.failed(t.step, t.role, t.action, err)
	}
	return outcome, nil
}

// outcome waits until another process's work has ended; this process's part ends with it.
func (o *remote) outcome(ctx context.Context, w work) (outcome peer.Outcome, err error) {
	r, owner, part := w.base().run, w.base().owner, w.ownPart()
	at := &r.position.Position
	if part == nil {
		outcome, over, err := o.Known(at, owner, w)
		if !over && err == nil {
			r.testbed.Outside(func() { outcome, err = o.AwaitOutcome(ctx, at, owner, w) })
		}
		return outcome, err
	}
	_ = at.Key() // for both
	inside, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		outcome, err = o.AwaitOutcome(ctx, at, owner, w)
		end(testbed.ErrSibling)
	}()
	part(inside)
	r.testbed.Outside(func() { <-done })
	return outcome, err
}

// take applies the outcome of another process's step; its failure is this process's, too.  It rejects an outcome that
// the step cannot have: names, indexes and roles come from the file, not from the message.
func (r *caseRun) take(outcome peer.Outcome, owner string, binds func(role, name string, index int) bool) error {
	if len(outcome.Loops) > maxLoops {
		return fmt.Errorf("the process of %s sent %d loops in one step", owner, len(outcome.Loops))
	}
	printable.Each(outcome.Failure, verb.Brief)
	printable.Each(&outcome.Loops, verb.Brief)
	for _, each := range outcome.Bound {
		value, err := meeting.Decode(each.Value)
		if err != nil {
			return err
		}
		fields, is := value.(map[string]any)
		switch {
		case each.Buffer && is && r.isBuffer(&each, owner):
			r.roleObjects[each.Role][each.Name] = fields
		case is && !each.Buffer && binds(each.Role, each.Name, each.Index):
			r.bind(each.Role, each.Name, each.Index, fields, timeline.Instant{})
		default:
			return fmt.Errorf(
				"the process of %s has a result %.80q of role %.80q, which the step cannot have", owner, each.Name,
				each.Role,
			)
		}
	}
	for _, ends := range outcome.Ignored {
		r.testbed.IgnorePeer(ends)
	}
	r.loops.Received = append(r.loops.Received, outcome.Loops...)
	switch f := outcome.Failure; {
	case f == nil:
		return nil
	case f.Late:
		return &overtime{f.What, true}
	case f.Kind == record.KindError:
		return &testbed.EnvironmentError{What: "in its process", Err: errors.New(f.What)}
	default:
		return f.Here()
	}
}

// isBuffer reports whether a result is a buffer of a role of the step's process.
func (r *caseRun) isBuffer(each *peer.Result, owner string) bool {
	_, known := r.roleObjects[each.Role][each.Name].(map[string]any)
	return known && r.roster.where[each.Role] == owner && each.Name != "device" && each.Name != "provider"
}

const (
	// maxLoops bounds the loops in an outcome, maxLoopSteps the steps of one loop.
	maxLoops, maxLoopSteps = 1 << 10, 1 << 40
	// maxPath bounds the names of steps around a failure in another process.
	maxPath = 64
)
