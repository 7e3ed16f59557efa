package exec

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"rdmarun/host/scenario/compile"
)

// A loop all of whose steps are of one role is one step for the other processes: they wait until its process has run all of
// it, and need not walk through rounds that are none of theirs.  What is told is what counts after it: the last result under
// each name, the step that failed, how long the rounds took, and meanwhile now and then how far it is.

// aliveTime is how often the others are told how far a loop is.
const aliveTime = 200 * time.Millisecond

// wholeLoop runs a loop of one role, or waits for it if the role is elsewhere.
func (r *caseRun) wholeLoop(ctx context.Context, step *compile.Step, repeat *compile.Repeat, advance *advance) error {
	o, process := r.others, r.others.where[repeat.Role]
	switch {
	case o.over && process != "":
		return nil
	case o.over:
		return r.loop(ctx, step, repeat, advance)
	}
	r.turns.next()
	if process != "" {
		return r.loopElsewhere(ctx, step, repeat, advance)
	}
	r.turns.begin()
	r.turns.whole = true
	steps, before := r.steps, r.loops
	r.loops = loops{active: before.active}
	alive := &alive{run: r, key: r.roundsKey(), advance: advance}
	alive.start()
	defer alive.stop() // whatever happens in the loop
	err := r.loop(ctx, step, repeat, advance)
	telling := alive.stop()
	r.turns.whole = false
	timed := r.loops.records()
	before.join(&r.loops)
	r.loops = before
	if ctx.Err() != nil {
		return err
	}
	if telling == nil {
		told := r.brought(err)
		told.Steps, told.Loops = r.steps-steps, timed
		var failed *stepError
		if errors.As(err, &failed) {
			told.Failure.Step = 1 + slices.Index(repeat.All, failed.step)
			told.Failure.Path, told.Failure.Used = failed.path, failed.used
		}
		telling = r.tell(told)
	}
	if telling != nil && err == nil {
		return r.untold(step, repeat.Role, "repeat", telling)
	}
	return err
}

// loopElsewhere waits for a loop that another process runs.
func (r *caseRun) loopElsewhere(ctx context.Context, step *compile.Step, repeat *compile.Repeat, advance *advance) error {
	key := r.roundsKey()
	r.away.Add(1)
	defer r.away.Add(-1)
	told, err := r.elsewhere(ctx, &remoteStep{
		step: step, role: repeat.Role, action: "repeat", process: r.others.where[repeat.Role], loop: true, leaves: true,
		hears: func(int) string { return key },
		heard: func(raw json.RawMessage) error {
			var at int64
			err := json.Unmarshal(raw, &at)
			if advance.of != unknown {
				at = min(at, int64(advance.of))
			}
			advance.at.Store(max(0, at))
			return err
		},
		binds: func(role, name string, index int) bool {
			return role == repeat.Role && index == -1 && names(repeat.All, name)
		},
	})
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
	run     *caseRun
	key     string
	advance *advance

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
	if at := a.advance.at.Load(); at != a.told {
		a.told, a.err = at, a.run.others.meeting.Tell(a.key, at)
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
