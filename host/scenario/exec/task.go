package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
	"rdmarun/host/scenario/verb"
)

// outcome is what a process tells of a step.
type outcome struct {
	Bound []boundResult `json:"bound,omitempty"`
	// Ignored are the connections of whose peers no leftovers are looked for.
	Ignored []testbed.Ends `json:"ignored,omitempty"`
	Failure *failureTold   `json:"failure,omitempty"`
	// Steps is how many a loop that ran as a whole has had, Loops is how long its rounds took.
	Steps int           `json:"steps,omitempty"`
	Loops []record.Loop `json:"loops,omitempty"`
}

// empty tells whether nothing of it is worth a message of its own.
func (o *outcome) empty() bool {
	return len(o.Bound)+len(o.Ignored)+len(o.Loops)+o.Steps == 0 && o.Failure == nil
}

// boundResult is a result that got a name; of a buffer, its new keys.
type boundResult struct {
	Role   string          `json:"role"`
	Name   string          `json:"name"`
	Index  int             `json:"index"`
	Buffer bool            `json:"buffer,omitempty"`
	Value  json.RawMessage `json:"value"`
	// value is what Value is made of.
	value any
}

// brought is what the running step, which has ended with this error, has brought.
func (r *caseRun) brought(err error) outcome {
	told := outcome{Bound: r.turns.bound, Ignored: r.turns.ignored}
	if err != nil {
		told.Failure = r.failureTold(err)
	}
	return told
}

// tell tells the others what the running step has brought; of a step that has brought nothing, together with others
// like it.
func (o *remote) tell(r *caseRun, told outcome) error {
	if told.empty() && r.turns.told == 0 {
		return o.quiet.passed(r.turns.prefix, r.turns.count)
	}
	if err := o.quiet.flush(); err != nil {
		return err
	}
	for i := range told.Bound {
		each := &told.Bound[i]
		raw, err := meeting.Encode(each.value)
		if err != nil {
			return fmt.Errorf("%s: %w", each.Name, err)
		}
		each.Value = raw
	}
	return o.mailbox.Tell(r.stepKey(), told)
}

// task is a step, or a loop of one role, as processes divide it.
type task struct {
	step         *compile.Step
	role, action string
	// owner is the process that has it; "" is this one.
	owner string
	// here runs it in its owner, and adds says what of it the outcome has beside names; nil: nothing.
	here func(ctx context.Context) error
	adds func(told *outcome, err error)
	// leaves is set where there may be messages of it that nobody took.
	leaves bool

	// What follows is for all but the owner.  loop is set for one that runs as a whole.
	loop bool
	// hears is the key of its n-th message before the outcome, heard takes that; taken is how many it has taken.
	hears func(n int) string
	heard func(raw json.RawMessage) error
	taken int
	// half runs the part of it that is here, while another goroutine waits for the outcome, which ends it; nil for
	// none.
	half func(context.Context)
	// binds tells whether it gives a result of a role a name, or a place among several (index -1 is for a name).
	binds func(role, name string, index int) bool
}

// run runs a task where its owner is: here, and tells the others of it, or elsewhere, and learns what it has brought.
func (o *remote) run(ctx context.Context, r *caseRun, t *task) (told outcome, err error) {
	if t.leaves {
		defer func() { o.mailbox.Forget(r.stepKey() + "/") }()
	}
	if t.owner != "" {
		return o.elsewhere(ctx, r, t)
	}
	r.turns.telling, r.turns.bound, r.turns.ignored, r.turns.told, r.turns.untold = true, nil, nil, 0, nil
	err = t.here(ctx)
	r.turns.telling = false
	if ctx.Err() != nil {
		return told, err // the case ends, and so says its end
	}
	told = r.brought(err)
	if t.adds != nil {
		t.adds(&told, err)
	}
	if telling := cmp.Or(r.turns.untold, o.tell(r, told)); telling != nil && err == nil {
		err = r.failed(t.step, t.role, t.action, &testbed.EnvironmentError{
			What: "tell the other processes", Err: telling,
		})
	}
	return told, err
}

// elsewhere waits for the outcome of a task of another process, and runs half of it, where there is one here.
func (o *remote) elsewhere(ctx context.Context, r *caseRun, t *task) (told outcome, err error) {
	r.enter(t.role, r.roster.numbers[t.role])
	// Those who would tell what this one waits for may wait for it.
	if err = o.quiet.flush(); err == nil {
		told, err = o.outcome(ctx, r, t)
	}
	if t.loop {
		r.steps += max(0, min(told.Steps, mostSteps))
	} else {
		r.steps++
	}
	r.ended.Add(1)
	var ended *testbed.Failure
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &ended):
	case err != nil:
		err = &testbed.EnvironmentError{What: "wait for a step of role " + t.role, Err: err}
	case !told.empty():
		err = r.take(told, t)
	}
	if err != nil {
		return told, r.failed(t.step, t.role, t.action, err)
	}
	return told, nil
}

// outcome waits until a task of another process has ended there; half of it, where there is one here, ends with it.
func (o *remote) outcome(ctx context.Context, r *caseRun, t *task) (told outcome, err error) {
	if t.half == nil {
		told, over, err := o.known(r, t)
		if !over && err == nil {
			r.outside(func() { told, err = o.await(ctx, r, t) })
		}
		return told, err
	}
	_ = r.stepKey() // for both
	inside, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		told, err = o.await(ctx, r, t)
		end(errSibling)
	}()
	t.half(inside)
	r.outside(func() { <-done })
	return told, err
}

// known takes what has come of a task of another process, and does not wait for more; over tells whether it has ended.
func (o *remote) known(r *caseRun, t *task) (told outcome, over bool, err error) {
	of := o.quietOf(r, t.owner)
	if of.last < r.turns.count {
		if raw, came := o.mailbox.Take(t.owner, of.key); came {
			err = of.note(raw)
		}
	}
	// What a step has brought was told before it is known of one after it that it has brought nothing.
	r.turns.room = r.turns.appendKey(r.turns.room[:0])
	if err != nil || !o.mailbox.HasCome(t.owner, r.turns.room) {
		return told, of.last >= r.turns.count, err
	}
	// So was what it told meanwhile, which nobody may have taken yet.
	for {
		raw, came := o.mailbox.Take(t.owner, t.hears(t.taken))
		if !came {
			break
		}
		t.taken++
		if err := t.heard(raw); err != nil {
			return told, false, err
		}
	}
	raw, _ := o.mailbox.Take(t.owner, r.stepKey())
	err = json.Unmarshal(raw, &told)
	return told, true, err
}

// await waits for what a task of another process brings, and takes what it tells meanwhile.
func (o *remote) await(ctx context.Context, r *caseRun, t *task) (outcome, error) {
	var also []string
	if r.config.Observes {
		also = o.names // one that is lost is missed by those who wait for nobody, too
	}
	of := o.quietOf(r, t.owner)
	for {
		if told, over, err := o.known(r, t); over || err != nil {
			return told, err
		}
		meanwhile, step := t.hears(t.taken), r.stepKey()
		key, raw, err := o.hear(ctx, t.owner, also, meanwhile, step, of.key)
		switch {
		case err != nil:
			return outcome{}, err
		case key == meanwhile:
			t.taken++
			err = t.heard(raw)
		case key == of.key:
			err = of.note(raw)
		default:
			var told outcome
			err = json.Unmarshal(raw, &told)
			return told, err
		}
		if err != nil {
			return outcome{}, err
		}
	}
}

// outside waits for another process, or for other goroutines of this one: meanwhile these have the lock of the testbed,
// and a virtual clock moves.
func (r *caseRun) outside(wait func()) {
	r.testbed.Unlocked(func() { r.testbed.Clock().Outside(wait) })
}

// take makes known here what a step elsewhere has brought; its failure is this process's, too.  What the step, as it is
// here, cannot have brought is refused: names, places in lists and roles are the file's, whatever a process says.
func (r *caseRun) take(told outcome, t *task) error {
	if len(told.Loops) > mostLoops {
		return fmt.Errorf("the process of %s tells of %d loops in one step", t.owner, len(told.Loops))
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
		case each.Buffer && is && r.isBuffer(&each, t):
			r.roleObjects[each.Role][each.Name] = record
		case is && !each.Buffer && t.binds(each.Role, each.Name, each.Index):
			r.bind(each.Role, each.Name, each.Index, record, timeline.Instant{})
		default:
			return fmt.Errorf(
				"the process of %s has a result %.80q of role %.80q, which the step cannot have", t.owner, each.Name,
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
		return f.failure()
	}
}

// isBuffer tells whether a result is a buffer that a role of the step's process has.
func (r *caseRun) isBuffer(each *boundResult, t *task) bool {
	_, known := r.roleObjects[each.Role][each.Name].(map[string]any)
	return known && r.roster.where[each.Role] == t.owner && each.Name != "device" && each.Name != "provider"
}

const (
	// mostLoops bounds the loops that a step of another process may tell of, mostSteps the steps of one loop.
	mostLoops, mostSteps = 1 << 10, 1 << 40
	// mostPath bounds the names of steps around a failure in another process.
	mostPath = 64
)
