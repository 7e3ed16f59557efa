package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
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

// tell tells the others what the running step has brought; of a step that has brought nothing, together with others like it.
func (r *caseRun) tell(told outcome) error {
	if told.empty() && r.turns.told == 0 {
		return r.others.quiet.passed(r.turns.prefix, r.turns.count)
	}
	if err := r.others.quiet.flush(); err != nil {
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
	return r.others.meeting.Tell(r.stepKey(), told)
}

// untold is the error of a step whose results the others could not be told.
func (r *caseRun) untold(step *compile.Step, role, action string, err error) error {
	return r.failed(step, role, action, &testbed.EnvironmentError{What: "tell the other processes", Err: err})
}

// remoteStep is a step that runs in another process.
type remoteStep struct {
	step                  *compile.Step
	role, action, process string
	// loop is set for one that runs as a whole, leaves where there may be messages that nobody took.
	loop, leaves bool
	// hears is the key of its n-th message before the outcome, heard takes that.
	hears func(n int) string
	heard func(raw json.RawMessage) error
	// half runs the part of it that is here, while another goroutine waits for the outcome, which ends it; nil for none.
	half func(context.Context)
	// binds tells whether it gives a result of a role a name, or a place among several (index -1 is for a name).
	binds func(role, name string, index int) bool
}

// elsewhere waits for the result of a step that runs in another process, and runs half of it, where there is one here.
func (r *caseRun) elsewhere(ctx context.Context, remote *remoteStep) (told outcome, err error) {
	r.enter(remote.role, r.others.numbers[remote.role])
	// Those who would tell what this one waits for may wait for it.
	if err = r.others.quiet.flush(); err == nil {
		told, err = r.await(ctx, remote)
	}
	if remote.loop {
		r.steps += max(0, min(told.Steps, mostSteps))
	} else {
		r.steps++
	}
	r.ended.Add(1)
	if remote.leaves {
		r.others.meeting.Forget(r.stepKey() + "/")
	}
	var ended *testbed.Failure
	switch {
	case err != nil && ctx.Err() != nil:
		err = context.Cause(ctx)
	case errors.As(err, &ended):
	case err != nil:
		err = &testbed.EnvironmentError{What: "wait for a step of role " + remote.role, Err: err}
	default:
		err = r.take(told, remote)
	}
	if err != nil {
		return told, r.failed(remote.step, remote.role, remote.action, err)
	}
	return told, nil
}

// await waits until a step that runs in another process has ended there; half of it, where there is one here, ends with it.
func (r *caseRun) await(ctx context.Context, remote *remoteStep) (told outcome, err error) {
	if remote.half == nil {
		r.outside(func() { told, err = r.hearOutcome(ctx, remote) })
		return told, err
	}
	_ = r.stepKey() // for both
	inside, end := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		told, err = r.hearOutcome(ctx, remote)
		end(errSibling)
	}()
	remote.half(inside)
	r.outside(func() { <-done })
	return told, err
}

// outside waits for another process, or for other goroutines of this one: meanwhile these have the lock of the testbed, and a
// virtual clock moves.
func (r *caseRun) outside(wait func()) {
	r.testbed.Unlocked(func() { r.testbed.Clock().Outside(wait) })
}

// hearOutcome waits for what a step elsewhere brings, and takes what it tells meanwhile.
func (r *caseRun) hearOutcome(ctx context.Context, remote *remoteStep) (told outcome, err error) {
	o := r.others
	needed := []string{remote.process}
	if r.config.Observes {
		needed = o.names // one that is lost is missed by those who wait for nobody, too
	}
	step, quiet := r.stepKey(), r.quietOf(remote.process)
	for heard := 0; ; {
		// What a step has brought was told before it is known of one after it that it has brought nothing.
		if raw, came := o.meeting.Take(remote.process, step); came {
			return told, json.Unmarshal(raw, &told)
		}
		if quiet.last >= r.turns.count {
			return told, nil
		}
		before := remote.hears(heard)
		key, raw, err := o.hearWith(ctx, needed, remote.process, before, step, quiet.key)
		switch {
		case err != nil:
			return told, err
		case key == before:
			heard++
			err = remote.heard(raw)
		case key == quiet.key:
			err = quiet.note(raw)
		default:
			return told, json.Unmarshal(raw, &told)
		}
		if err != nil {
			return told, err
		}
	}
}

// take makes known here what a step elsewhere has brought; its failure is this process's, too.  What the step, as it is here,
// cannot have brought is refused: names, places in lists and roles are the file's, whatever a process says.
func (r *caseRun) take(told outcome, remote *remoteStep) error {
	if len(told.Loops) > mostLoops {
		return fmt.Errorf("the process of %s tells of %d loops in one step", remote.process, len(told.Loops))
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
		case each.Buffer && is && r.isBuffer(&each, remote):
			r.roleObjects[each.Role][each.Name] = record
		case is && !each.Buffer && remote.binds(each.Role, each.Name, each.Index):
			r.bind(each.Role, each.Name, each.Index, record, instant{})
		default:
			return fmt.Errorf("the process of %s has a result %.80q of role %.80q, which the step cannot have", remote.process, each.Name, each.Role)
		}
	}
	for _, ends := range told.Ignored {
		r.testbed.IgnorePeer(ends)
	}
	r.loops.told = append(r.loops.told, told.Loops...)
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
func (r *caseRun) isBuffer(each *boundResult, remote *remoteStep) bool {
	_, known := r.roleObjects[each.Role][each.Name].(map[string]any)
	return known && r.others.where[each.Role] == remote.process && each.Name != "device" && each.Name != "provider"
}

const (
	// mostLoops bounds the loops that a step of another process may tell of, mostSteps the steps of one loop.
	mostLoops, mostSteps = 1 << 10, 1 << 40
	// mostPath bounds the names of steps around a failure in another process.
	mostPath = 64
)
