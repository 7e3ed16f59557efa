package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"rdmarun/host/printable"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
	"rdmarun/host/scenario/verb"
)

// brought is what the running step, which has ended with this error, has brought.
func (r *caseRun) brought(err error) peer.Outcome {
	told := peer.Outcome{Bound: r.turns.bound, Ignored: r.turns.ignored}
	if err != nil {
		told.Failure = r.failureTold(err)
	}
	return told
}

// work is what processes divide by roles: a call (remoteCall), or a loop all of whose steps are of one role
// (remoteLoop).
type work interface {
	base() *task
	// here runs it in its owner.  adds adds to its outcome what that has beside names and a failure.
	here(ctx context.Context) error
	adds(told *peer.Outcome, err error)

	// What follows is for all but the owner.  heardUnder is the key of its n-th message before the outcome, which heard
	// takes.
	heardUnder(n int) string
	heard(raw json.RawMessage) error
	// half runs the part of it that is here, while another goroutine waits for the outcome, which ends it; nil for
	// none.
	half() func(context.Context)
	// binds tells whether it gives a result of a role a name, or a place among several (index -1 is for a name).
	binds(role, name string, index int) bool
	// count is how many steps it was, given how many its owner tells.
	count(told int) int
}

// task is what both kinds of work have.
type task struct {
	remote       *remote
	run          *caseRun
	step         *compile.Step
	role, action string
	// owner is the process that has it; "" is this one.
	owner string
	// leaves is set where there may be messages of it that nobody took.
	leaves bool
	// taken is how many messages before the outcome were taken.
	taken int
}

func (t *task) base() *task { return t }

// do runs work where its owner is: here, and tells the others of it, or elsewhere, and learns what it has brought.
func (o *remote) do(ctx context.Context, w work) (told peer.Outcome, err error) {
	t := w.base()
	r := t.run
	if t.leaves {
		defer func() { o.Mailbox.Forget(r.stepKey() + "/") }()
	}
	if t.owner != "" {
		return o.elsewhere(ctx, w)
	}
	r.turns.telling, r.turns.bound, r.turns.ignored, r.turns.told, r.turns.untold = true, nil, nil, 0, nil
	err = w.here(ctx)
	r.turns.telling = false
	if ctx.Err() != nil {
		return told, err // the case ends, and so says its end
	}
	told = r.brought(err)
	w.adds(&told, err)
	reporting := o.Report(r.stepKey, r.turns.prefix, r.turns.count, r.turns.told > 0, told)
	if telling := cmp.Or(r.turns.untold, reporting); telling != nil && err == nil {
		err = r.failed(t.step, t.role, t.action, &testbed.EnvironmentError{
			What: "tell the other processes", Err: telling,
		})
	}
	return told, err
}

// elsewhere waits for the outcome of work of another process, and runs half of it, where there is one here.
func (o *remote) elsewhere(ctx context.Context, w work) (told peer.Outcome, err error) {
	t := w.base()
	r := t.run
	r.enter(t.role, r.roster.numbers[t.role])
	// Those who would tell what this one waits for may wait for it.
	if err = o.Quiet.Flush(); err == nil {
		told, err = o.outcome(ctx, w)
	}
	r.steps += w.count(told.Steps)
	r.ended.Add(1)
	var ended *testbed.Failure
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &ended):
	case err != nil:
		err = &testbed.EnvironmentError{What: "wait for a step of role " + t.role, Err: err}
	case !told.Empty():
		err = r.take(told, t.owner, w.binds)
	}
	if err != nil {
		return told, r.failed(t.step, t.role, t.action, err)
	}
	return told, nil
}

// outcome waits until work of another process has ended there; half of it, where there is one here, ends with it.
func (o *remote) outcome(ctx context.Context, w work) (told peer.Outcome, err error) {
	r, half := w.base().run, w.half()
	if half == nil {
		told, over, err := o.known(w)
		if !over && err == nil {
			r.testbed.Outside(func() { told, err = o.await(ctx, w) })
		}
		return told, err
	}
	_ = r.stepKey() // for both
	inside, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		told, err = o.await(ctx, w)
		end(testbed.ErrSibling)
	}()
	half(inside)
	r.testbed.Outside(func() { <-done })
	return told, err
}

// known takes what has come of work of another process, and does not wait for more; over tells whether it has ended.
func (o *remote) known(w work) (told peer.Outcome, over bool, err error) {
	t := w.base()
	r := t.run
	of := r.quietOf(t.owner)
	if of.Last < r.turns.count {
		if raw, came := o.Mailbox.Take(t.owner, of.Key); came {
			err = of.Note(raw)
		}
	}
	// What a step has brought was told before it is known of one after it that it has brought nothing.
	r.turns.room = r.turns.appendKey(r.turns.room[:0])
	if err != nil || !o.Mailbox.HasCome(t.owner, r.turns.room) {
		return told, of.Last >= r.turns.count, err
	}
	// So was what it told meanwhile, which nobody may have taken yet.
	for {
		raw, came := o.Mailbox.Take(t.owner, w.heardUnder(t.taken))
		if !came {
			break
		}
		t.taken++
		if err := w.heard(raw); err != nil {
			return told, false, err
		}
	}
	raw, _ := o.Mailbox.Take(t.owner, r.stepKey())
	err = json.Unmarshal(raw, &told)
	return told, true, err
}

// await waits for what work of another process brings, and takes what it tells meanwhile.
func (o *remote) await(ctx context.Context, w work) (peer.Outcome, error) {
	t := w.base()
	r := t.run
	var also []string
	if r.config.Observes {
		also = o.Names // one that is lost is missed by those who wait for nobody, too
	}
	of := r.quietOf(t.owner)
	for {
		if told, over, err := o.known(w); over || err != nil {
			return told, err
		}
		meanwhile, step := w.heardUnder(t.taken), r.stepKey()
		key, raw, err := o.Hear(ctx, t.owner, also, meanwhile, step, of.Key)
		switch {
		case err != nil:
			return peer.Outcome{}, err
		case key == meanwhile:
			t.taken++
			err = w.heard(raw)
		case key == of.Key:
			err = of.Note(raw)
		default:
			var told peer.Outcome
			err = json.Unmarshal(raw, &told)
			return told, err
		}
		if err != nil {
			return peer.Outcome{}, err
		}
	}
}

// take makes known here what a step elsewhere has brought; its failure is this process's, too.  What the step, as it is
// here, cannot have brought is refused: names, places in lists and roles are the file's, whatever a process says.
func (r *caseRun) take(told peer.Outcome, owner string, binds func(role, name string, index int) bool) error {
	if len(told.Loops) > mostLoops {
		return fmt.Errorf("the process of %s tells of %d loops in one step", owner, len(told.Loops))
	}
	printable.Each(told.Failure, verb.Brief)
	printable.Each(&told.Loops, verb.Brief)
	for _, each := range told.Bound {
		value, err := meeting.Decode(each.Value)
		if err != nil {
			return err
		}
		record, is := value.(map[string]any)
		switch {
		case each.Buffer && is && r.isBuffer(&each, owner):
			r.roleObjects[each.Role][each.Name] = record
		case is && !each.Buffer && binds(each.Role, each.Name, each.Index):
			r.bind(each.Role, each.Name, each.Index, record, timeline.Instant{})
		default:
			return fmt.Errorf(
				"the process of %s has a result %.80q of role %.80q, which the step cannot have", owner, each.Name,
				each.Role,
			)
		}
	}
	for _, ends := range told.Ignored {
		r.testbed.IgnorePeer(ends)
	}
	r.loops.Told = append(r.loops.Told, told.Loops...)
	switch f := told.Failure; {
	case f == nil:
		return nil
	case f.Late:
		return &overtime{f.What, true}
	case f.Kind == "error":
		return &testbed.EnvironmentError{What: "in its process", Err: errors.New(f.What)}
	default:
		return f.Here()
	}
}

// isBuffer tells whether a result is a buffer that a role of the step's process has.
func (r *caseRun) isBuffer(each *peer.Result, owner string) bool {
	_, known := r.roleObjects[each.Role][each.Name].(map[string]any)
	return known && r.roster.where[each.Role] == owner && each.Name != "device" && each.Name != "provider"
}

const (
	// mostLoops bounds the loops that a step of another process may tell of, mostSteps the steps of one loop.
	mostLoops, mostSteps = 1 << 10, 1 << 40
	// mostPath bounds the names of steps around a failure in another process.
	mostPath = 64
)
