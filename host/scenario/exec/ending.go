package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
)

// failureTold is what the others are told of the failure of a step.
func (r *caseRun) failureTold(err error) *peer.Failure {
	failure := peer.FailureOf(r.describe(err))
	var late *overtime
	failure.Late = errors.As(err, &late) && late.ofStep
	return &failure
}

// settle waits until the others have looked for what they left unread as well: what this process frees would be news
// there.
func (o *remote) settle(ctx context.Context, r *caseRun) {
	if ctx.Err() != nil {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	if o.TellOnce("looked", true) != nil {
		return
	}
	r.testbed.Outside(func() {
		for _, name := range o.Names {
			// Who has ended the case instead is for end to judge.
			if _, _, err := o.HearLast(waiting, name, peer.Key("looked", name)); err != nil {
				return
			}
		}
	})
}

// end ends the case together with the others: what failed in one of them has failed.
func (o *remote) end(ctx context.Context, r *caseRun) {
	defer o.Mailbox.Close()
	err := cmp.Or(o.Quiet.End(), o.TellOnce("end", r.ownEnd()))
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
	for _, name := range o.Names {
		there, told := o.EndOf(name)
		if !told && err == nil {
			err = o.Receive(waiting, name, peer.Key("end", name), &there)
			there.Brief()
		}
		if err != nil {
			break
		}
		if r.config.Observes {
			r.addMoments(name, there, r.config.Clocks[name].Ahead)
			r.result.AddTraffic(there.Traffic[:min(len(there.Traffic), maxOperations)])
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
func (r *caseRun) ownEnd() peer.End {
	end := peer.End{
		Status: r.result.Status, Reason: r.result.Reason, Began: r.begin, Traffic: r.result.Traffic,
		Tallies: r.result.Tallies,
	}
	if r.history != nil && r.result.Status != record.Passed {
		end.Timeline = r.history.Moments()
	}
	for _, f := range r.result.Failures {
		end.Failures = append(end.Failures, peer.FailureOf(f))
	}
	return end
}

// failWith fails a case that has failed in another process alone.
func (r *caseRun) failWith(there *peer.End, process string) {
	r.result.Status = record.Failed
	if there.Status == record.Errored {
		r.result.Status, r.result.Reason = record.Errored, there.Reason
	}
	for _, f := range there.Failures[:min(len(there.Failures), mostFailures)] {
		failure := peer.FailureOf(f.Failure).Failure // whatever it told
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
func (r *caseRun) addMoments(process string, there peer.End, ahead time.Duration) {
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

// mostFailures is how many failures of another process are taken.
const mostFailures = 100

// maxOperations bounds how many operations another process may say that it has posted.
const maxOperations = 64
