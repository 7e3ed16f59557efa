package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
	"rdmarun/host/scenario/verb"
)

// ending is what a process tells of the end of a case.
type ending struct {
	Status   record.Status `json:"status"`
	Reason   string        `json:"reason,omitempty"`
	Failures []failureTold `json:"failures,omitempty"`
	// Began is when the case began there, by its wall clock; Timeline are its last steps.
	Began    time.Time       `json:"began"`
	Timeline []record.Moment `json:"timeline,omitempty"`
	// Traffic is what its roles have posted.
	Traffic []record.Traffic `json:"traffic,omitempty"`
	record.Tallies
}

// failureTold is a failure without what only its own process can show (toldOf).
type failureTold struct {
	record.Failure
	// Late tells that the step took longer than its own limit.
	Late bool `json:"late,omitempty"`
	// Step is its number in a loop that ran as a whole, from 1.
	Step int `json:"step,omitempty"`
}

func toldOf(f record.Failure) failureTold {
	f.File, f.Excerpt, f.Timeline, f.Path, f.Used, f.Rerun = "", nil, nil, nil, nil, ""
	return failureTold{Failure: f}
}

// failureTold is what the others are told of the failure of a step.
func (r *caseRun) failureTold(err error) *failureTold {
	failure := toldOf(r.describe(err))
	var late *overtime
	failure.Late = errors.As(err, &late) && late.ofStep
	return &failure
}

// failure is that of a step here which has failed elsewhere.
func (f *failureTold) failure() *testbed.Failure {
	return &testbed.Failure{What: f.What, Expected: f.Expected, Got: f.Got, Hint: f.Hint}
}

// note keeps the end that a process has told; one that cannot be read is that of a process that failed.
func (o *remote) note(name string, raw json.RawMessage) {
	var end ending
	if err := json.Unmarshal(raw, &end); err != nil {
		end = ending{Status: record.Errored, Reason: fmt.Sprintf("how it ended cannot be read: %v", err)}
	}
	end.brief()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ends[name] = end
}

// brief cuts the texts of the end of another process, which are shown.
func (e *ending) brief() { printable.Each(e, verb.Brief) }

// endOf is the end of a process, if it has told it.
func (o *remote) endOf(name string) (end ending, told bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	end, told = o.ends[name]
	return end, told
}

// endedBy ends all waiting for steps, because a process has told its end, and is what to say of that.
func (o *remote) endedBy(name string) error {
	end, _ := o.endOf(name)
	why := end.failure(name)
	o.leave(why)
	return why
}

// failure is the end of a process as those see it who wait for its steps.
func (e *ending) failure(process string) error {
	what := fmt.Sprintf("the process of %s has ended the case", process)
	if e.Status == record.Errored || e.Status == record.Interrupted || e.Status == record.TimedOut {
		return &testbed.EnvironmentError{What: what, Err: errors.New(cmp.Or(e.Reason, string(e.Status)))}
	}
	failure := &testbed.Failure{What: what, Got: string(e.Status)}
	if len(e.Failures) > 0 {
		failure.Got = e.Failures[0].What
		failure.Hint = fmt.Sprintf("line %d there says more", e.Failures[0].Line)
	}
	return failure
}

// settle waits until the others have looked for what they left unread as well: what this process frees would be news
// there.
func (o *remote) settle(ctx context.Context, r *caseRun) {
	if ctx.Err() != nil {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	if o.mailbox.Tell(o.own("looked"), true) != nil {
		return
	}
	r.outside(func() {
		for _, name := range o.names {
			// Who has ended the case instead is for end to judge.
			if _, _, err := o.hearLast(waiting, name, key("looked", name)); err != nil {
				return
			}
		}
	})
}

// end ends the case together with the others: what failed in one of them has failed.
func (o *remote) end(ctx context.Context, r *caseRun) {
	defer o.mailbox.Close()
	err := cmp.Or(o.quiet.end(), o.mailbox.Tell(o.own("end"), r.ownEnd()))
	if r.config.Stop != nil && r.result.Status != record.Passed {
		r.config.Stop()
	}
	if !o.began {
		return
	}
	waiting, cancel := context.WithTimeoutCause(
		context.WithoutCancel(ctx), meetTime+r.config.stretched(r.testCase.Timeout),
		errors.New("the other processes do not end the case"),
	)
	defer cancel()
	for _, name := range o.names {
		there, told := o.endOf(name)
		if !told && err == nil {
			err = o.receive(waiting, name, key("end", name), &there)
			there.brief()
		}
		if err != nil {
			break
		}
		if r.config.Observes {
			r.addMoments(name, there, r.config.Clocks[name].Ahead)
			r.addTraffic(there.Traffic)
			for i := range there.Counters {
				there.Counters[i].Host = name // whatever it says
			}
			r.result.Tallies.Add(&there.Tallies)
		}
		if r.result.Status == record.Passed && there.Status != record.Passed {
			r.failWith(&there, name)
		}
	}
	switch gone := (*meeting.GoneError)(nil); {
	case err == nil:
	case r.result.Status == record.Passed:
		r.environment(err)
	case r.result.Status == record.Failed && errors.As(err, &gone) && !r.tells(gone):
		r.peerDied(err)
	}
}

// tells tells whether a failure says that a process has died: of a mesh it is a result, and the other pairs are
// measured.
func (r *caseRun) tells(gone *meeting.GoneError) bool {
	return slices.ContainsFunc(r.result.Failures, func(f record.Failure) bool {
		return strings.Contains(f.What+"\n"+f.Got+"\n"+f.Hint, gone.Error())
	})
}

// peerDied makes the death of a process that was to end the case the reason of a failure here: whether its connections
// break or the meeting finds it gone first is chance.
func (r *caseRun) peerDied(err error) {
	consequences := r.result.Failures
	r.result.Failures = nil
	r.environment(err)
	r.result.Failures = append(r.result.Failures, consequences...)
}

// ownEnd is how the case ended here.
func (r *caseRun) ownEnd() ending {
	end := ending{
		Status: r.result.Status, Reason: r.result.Reason, Began: r.begin, Traffic: r.result.Traffic,
		Tallies: r.result.Tallies,
	}
	if r.history != nil && r.result.Status != record.Passed {
		end.Timeline = r.history.Moments()
	}
	for _, f := range r.result.Failures {
		end.Failures = append(end.Failures, toldOf(f))
	}
	return end
}

// failWith fails a case that has failed in another process alone.
func (r *caseRun) failWith(there *ending, process string) {
	r.result.Status = record.Failed
	if there.Status == record.Errored {
		r.result.Status, r.result.Reason = record.Errored, there.Reason
	}
	for _, f := range there.Failures[:min(len(there.Failures), mostFailures)] {
		failure := toldOf(f.Failure).Failure // whatever it told
		failure.File, failure.Hint, failure.Rerun = r.program.File, joined(f.Hint, "in the process of "+process),
			r.rerun()
		if failure.Host = r.hostOf(failure.Role); !slices.ContainsFunc(
			slices.Concat(r.testCase.Roles, r.testCase.Elsewhere), func(role testbed.RoleConfig) bool {
				return role.Name == failure.Role
			}) {
			failure.Role = "" // it is none
		}
		r.result.Failures = append(r.result.Failures, failure)
	}
	if more := len(there.Failures) - mostFailures; more > 0 {
		last := &r.result.Failures[len(r.result.Failures)-1]
		last.Details = append(
			last.Details, fmt.Sprintf("%d more failures in the process of %s are left out", more, process),
		)
	}
}

// addMoments adds the last steps of another process to the timeline of a failure, whose clock is so much ahead of this
// one's.
func (r *caseRun) addMoments(process string, there ending, ahead time.Duration) {
	if len(r.result.Failures) == 0 {
		return
	}
	failure := &r.result.Failures[0]
	shift := there.Began.Add(-ahead).Sub(r.begin.Round(0)) // both by wall clocks
	for _, moment := range there.Timeline {
		if r.roster.where[moment.Role] == process {
			moment.At += shift
			failure.Timeline = append(failure.Timeline, moment)
		}
	}
	slices.SortStableFunc(failure.Timeline, func(a, b record.Moment) int { return cmp.Compare(a.At, b.At) })
	failure.Timeline = failure.Timeline[max(0, len(failure.Timeline)-timeline.MostOfAll):]
}

// addTraffic adds what another process has posted.
func (r *caseRun) addTraffic(more []record.Traffic) {
	for _, each := range more[:min(len(more), maxOperations)] {
		i := slices.IndexFunc(r.result.Traffic, func(t record.Traffic) bool { return t.Operation == each.Operation })
		if i < 0 {
			r.result.Traffic = append(r.result.Traffic, each)
			continue
		}
		r.result.Traffic[i].Count += each.Count
		r.result.Traffic[i].Bytes += each.Bytes
	}
}

// mostFailures is how many failures of another process are taken.
const mostFailures = 100

// maxOperations bounds how many operations another process may say that it has posted.
const maxOperations = 64
