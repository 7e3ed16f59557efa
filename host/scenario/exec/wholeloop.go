package exec

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/progress"
)

// A loop all of whose steps are of one role is one step for the other processes: they wait until its process has run
// all of it, and need not walk through rounds that are none of theirs.  What is told is what counts after it: the last
// result under each name, the step that failed, how long the rounds took, and meanwhile now and then how far it is.

// loop is work of the process that has the loop's role.
func (o *remote) loop(
	ctx context.Context, r *caseRun, step *compile.Step, repeat *compile.Repeat, advance *progress.Step,
) error {
	r.turns.next()
	l := &remoteLoop{task: task{
		remote: o, run: r, step: step, role: repeat.Role, action: "repeat", owner: r.roster.where[repeat.Role],
		leaves: true,
	}, repeat: repeat, advance: advance, rounds: r.stepKey() + "/rounds"}
	if l.owner == "" {
		_, err := o.do(ctx, l)
		return err
	}
	r.away.Add(1)
	defer r.away.Add(-1)
	told, err := o.do(ctx, l)
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

// remoteLoop is a loop all of whose steps are of one role.
type remoteLoop struct {
	task
	repeat  *compile.Repeat
	advance *progress.Step
	// rounds is the key of how far it is.
	rounds string
	// ran and timed are how many steps it had here, and how long its rounds took.
	ran   int
	timed []record.Loop
}

func (l *remoteLoop) here(ctx context.Context) error {
	r, before := l.run, l.run.loops
	l.ran -= r.steps
	r.turns.whole = true
	r.loops = before.Part()
	alive := &peer.Alive{Mailbox: l.remote.Mailbox, Key: l.rounds, Advance: l.advance}
	alive.Start()
	defer alive.Stop() // whatever happens in the loop
	err := r.loop(ctx, l.step, l.repeat, l.advance)
	r.turns.untold, r.turns.whole = alive.Stop(), false
	l.timed = r.loops.Records()
	before.Join(&r.loops)
	r.loops = before
	l.ran += r.steps
	return err
}

func (l *remoteLoop) adds(told *peer.Outcome, err error) {
	told.Steps, told.Loops = l.ran, l.timed
	var failed *stepError
	if errors.As(err, &failed) {
		told.Failure.Step = 1 + slices.Index(l.repeat.All, failed.step)
		told.Failure.Path, told.Failure.Used = failed.path, failed.used
	}
}

func (l *remoteLoop) count(told int) int          { return max(0, min(told, mostSteps)) }
func (l *remoteLoop) heardUnder(int) string       { return l.rounds }
func (l *remoteLoop) half() func(context.Context) { return nil }

func (l *remoteLoop) heard(raw json.RawMessage) error {
	var at int64
	err := json.Unmarshal(raw, &at)
	if l.advance.Of != progress.Unknown {
		at = min(at, int64(l.advance.Of))
	}
	l.advance.At.Store(max(0, at))
	return err
}

// binds tells of the names that steps of the loop give.
func (l *remoteLoop) binds(role, name string, index int) bool {
	return role == l.repeat.Role && index == -1 && name != "" &&
		slices.ContainsFunc(l.repeat.All, func(step *compile.Step) bool {
			call, is := step.Action.(*compile.Call)
			return is && call.As.Word == name
		})
}

// short is the beginning of a list that another process has told.
func short(list []string) []string { return list[:min(len(list), mostPath)] }
