package exec

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/progress"
)

// A loop all of whose steps are of one role is one step for the other processes: they wait until its process has run
// all of it, and need not walk through rounds that are none of theirs.  What is told is what counts after it: the last
// result under each name, the step that failed, how long the rounds took, and meanwhile now and then how far it is.

// aliveTime is how often the others are told how far a loop is.
const aliveTime = 200 * time.Millisecond

// loop is a task of the process that has the loop's role.
func (o *remote) loop(
	ctx context.Context, r *caseRun, step *compile.Step, repeat *compile.Repeat, advance *progress.Step,
) error {
	r.turns.next()
	t := &task{
		step: step, role: repeat.Role, action: "repeat", owner: r.roster.where[repeat.Role], loop: true, leaves: true,
	}
	if t.owner == "" {
		o.wholeLoop(r, t, repeat, advance)
		_, err := o.run(ctx, r, t)
		return err
	}
	rounds := r.roundsKey()
	t.hears = func(int) string { return rounds }
	t.heard = func(raw json.RawMessage) error {
		var at int64
		err := json.Unmarshal(raw, &at)
		if advance.Of != progress.Unknown {
			at = min(at, int64(advance.Of))
		}
		advance.At.Store(max(0, at))
		return err
	}
	t.binds = func(role, name string, index int) bool {
		return role == repeat.Role && index == -1 && names(repeat.All, name)
	}
	r.away.Add(1)
	defer r.away.Add(-1)
	told, err := o.run(ctx, r, t)
	var failed *stepError
	if err == nil || told.Failure == nil || !errors.As(err, &failed) {
		return err
	}
	if number := told.Failure.Step; number > 0 && number <= len(repeat.All) {
		failed.step = repeat.All[number-1]
		failed.span = failed.step.Span
	}
	failed.action, failed.path, failed.used = told.Failure.Action, short(told.Failure.Path), short(told.Failure.Used)
	return failed
}

// wholeLoop fills in how a loop runs here, and what is told of it.
func (o *remote) wholeLoop(r *caseRun, t *task, repeat *compile.Repeat, advance *progress.Step) {
	steps, before := r.steps, r.loops
	var timed []record.Loop
	t.here = func(ctx context.Context) error {
		r.turns.whole = true
		r.loops = before.Part()
		alive := &alive{mailbox: o.mailbox, key: r.roundsKey(), advance: advance}
		alive.start()
		defer alive.stop() // whatever happens in the loop
		err := r.loop(ctx, t.step, repeat, advance)
		r.turns.untold, r.turns.whole = alive.stop(), false
		timed = r.loops.Records()
		before.Join(&r.loops)
		r.loops = before
		return err
	}
	t.adds = func(told *outcome, err error) {
		told.Steps, told.Loops = r.steps-steps, timed
		var failed *stepError
		if errors.As(err, &failed) {
			told.Failure.Step = 1 + slices.Index(repeat.All, failed.step)
			told.Failure.Path, told.Failure.Used = failed.path, failed.used
		}
	}
}

// roundsKey is that of how far the running step, a loop, is.
func (r *caseRun) roundsKey() string { return r.stepKey() + "/rounds" }

// names tells whether one of some steps gives its result a name.
func names(steps []*compile.Step, name string) bool {
	return slices.ContainsFunc(steps, func(step *compile.Step) bool {
		call, is := step.Action.(*compile.Call)
		return is && call.As.Word == name && name != ""
	})
}

// short is the beginning of a list that another process has told.
func short(list []string) []string { return list[:min(len(list), mostPath)] }

// alive tells the other processes how far a loop is, from a timer's goroutine, until stop.
type alive struct {
	mailbox Mailbox
	key     string
	advance *progress.Step

	mu    sync.Mutex
	timer *time.Timer
	told  int64
	over  bool
	err   error
}

func (a *alive) start() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.timer = time.AfterFunc(aliveTime, a.tell)
}

func (a *alive) tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.over || a.err != nil {
		return
	}
	if at := a.advance.At.Load(); at != a.told {
		a.told, a.err = at, a.mailbox.Tell(a.key, at)
	}
	a.timer.Reset(aliveTime)
}

// stop ends the telling; nothing is told after it.  The error is of what could not be told.
func (a *alive) stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	a.timer.Stop()
	return a.err
}
