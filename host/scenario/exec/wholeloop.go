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

// A loop with steps of one role only is one step for the other processes. They wait until its process has run all of
// it. The outcome has the last result of each name, the failed step and the times of the rounds. Messages before it
// report the progress.

// loop runs a loop in the process of its role.
func (o *remote) loop(
	ctx context.Context, r *caseRun, step *compile.Step, repeat *compile.Repeat, running *progress.Step,
) error {
	r.position.Next()
	l := &remoteLoop{task: task{
		remote: o, run: r, step: step, role: repeat.Role, action: "repeat", owner: r.roster.where[repeat.Role],
		leaves: true,
	}, repeat: repeat, running: running, rounds: r.position.Key() + "/rounds"}
	if l.owner == "" {
		_, err := o.do(ctx, l)
		return err
	}
	r.away.Add(1)
	defer r.away.Add(-1)
	outcome, err := o.do(ctx, l)
	var failed *stepError
	if err == nil || outcome.Failure == nil || !errors.As(err, &failed) {
		return err
	}
	if number := outcome.Failure.Step; number > 0 && number <= len(repeat.All) {
		failed.step = repeat.All[number-1]
		failed.span = failed.step.Span
	}
	there := outcome.Failure
	failed.action, failed.path, failed.used = there.Action, short(there.Path), short(there.Used)
	return failed
}

// remoteLoop is a loop with steps of one role.
type remoteLoop struct {
	task
	repeat  *compile.Repeat
	running *progress.Step
	// rounds is the key of its progress.
	rounds string
	// ran counts the steps that ran here; timed are the times of its rounds.
	ran   int
	timed []record.Loop
}

func (l *remoteLoop) here(ctx context.Context) error {
	r, before := l.run, l.run.loops
	l.ran -= r.steps
	r.position.whole = true
	r.loops = before.Part()
	alive := &peer.Alive{Mailbox: l.remote.Mailbox, Key: l.rounds, Progress: l.running}
	alive.Start()
	defer alive.Stop() // also after a failure in the loop
	err := r.loop(ctx, l.step, l.repeat, l.running)
	r.position.sendErr, r.position.whole = alive.Stop(), false
	l.timed = r.loops.Records()
	before.Join(&r.loops)
	r.loops = before
	l.ran += r.steps
	return err
}

func (l *remoteLoop) adds(outcome *peer.Outcome, err error) {
	outcome.Steps, outcome.Loops = l.ran, l.timed
	var failed *stepError
	if errors.As(err, &failed) {
		outcome.Failure.Step = 1 + slices.Index(l.repeat.All, failed.step)
		outcome.Failure.Path, outcome.Failure.Used = failed.path, failed.used
	}
}

func (l *remoteLoop) count(steps int) int            { return max(0, min(steps, maxLoopSteps)) }
func (l *remoteLoop) MessageKey(int) string          { return l.rounds }
func (l *remoteLoop) ownPart() func(context.Context) { return nil }

func (l *remoteLoop) Receive(raw json.RawMessage) error {
	var at int64
	err := json.Unmarshal(raw, &at)
	if l.running.Of != progress.Unknown {
		at = min(at, int64(l.running.Of))
	}
	l.running.At.Store(max(0, at))
	return err
}

// binds reports whether a step of the loop gives this name.
func (l *remoteLoop) binds(role, name string, index int) bool {
	return role == l.repeat.Role && index == -1 && name != "" &&
		slices.ContainsFunc(l.repeat.All, func(step *compile.Step) bool {
			call, is := step.Action.(*compile.Call)
			return is && call.As.Word == name
		})
}

// short bounds a list of another process.
func short(list []string) []string { return list[:min(len(list), maxPath)] }
