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

// peerFailure is the failure of a step as it is sent to the other processes.
func (r *caseRun) peerFailure(err error) *peer.Failure {
	failure := peer.FailureOf(r.describe(err))
	var late *overtime
	failure.Late = errors.As(err, &late) && late.ofStep
	failure.Waited = isLate(err)
	return &failure
}

// awaitChecks waits until the other processes have checked for unread completions and events.  This process frees
// nothing before, because that causes events there.
func (o *remote) awaitChecks(ctx context.Context, r *caseRun) {
	if ctx.Err() != nil {
		return
	}
	waiting, cancel := context.WithTimeout(ctx, meetTime)
	defer cancel()
	if o.SendOnce("looked", true) != nil {
		return
	}
	r.testbed.Outside(func() {
		for _, name := range o.Names {
			// end finds out which process has ended the case.
			if _, _, err := o.AwaitLast(waiting, name, peer.Key("looked", name)); err != nil {
				return
			}
		}
	})
}

// end ends the case together with the other processes.  A case that has failed in one of them has failed.
func (o *remote) end(ctx context.Context, r *caseRun) {
	defer o.Mailbox.Close()
	err := cmp.Or(o.EmptySteps.End(), o.SendOnce("end", r.ownEnd()))
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
		there, known := o.EndOf(name)
		if !known && err == nil {
			err = o.Receive(waiting, name, peer.Key("end", name), &there)
			there.Brief()
		}
		if err != nil {
			break
		}
		if r.config.IsController {
			r.addMoments(name, there, r.config.Clocks[name].Ahead)
			r.result.AddTraffic(there.Traffic[:min(len(there.Traffic), maxOperations)])
			for i := range there.Counters {
				there.Counters[i].Host = name // replaces any name in the message
			}
			r.result.Tallies.Add(&there.Tallies)
		}
		switch {
		case r.result.Status == record.Passed && there.Status != record.Passed:
			r.failWith(&there, name)
		case len(r.result.Failures) > 0:
			r.causedBy(&there, name)
		}
	}
	switch gone := (*meeting.GoneError)(nil); {
	case err == nil:
	case r.result.Status == record.Passed:
		r.environment(err)
	case r.result.Status == record.Failed && errors.As(err, &gone) && !r.reportsGone(gone):
		// It is chance whether its connections break first or the meeting finds it gone: its death is the reason.
		consequences := r.result.Failures
		r.result.Failures = nil
		r.environment(err)
		r.result.Failures = append(r.result.Failures, consequences...)
	}
}

// reportsGone reports whether a failure names a process that is gone.  For a mesh this is a result, and the other pairs
// are measured.
func (r *caseRun) reportsGone(gone *meeting.GoneError) bool {
	return slices.ContainsFunc(r.result.Failures, func(f record.Failure) bool {
		return strings.Contains(f.What+"\n"+f.Got+"\n"+f.Hint, gone.Error())
	})
}

// ownEnd is the end of the case in this process, as it is sent to the others.
func (r *caseRun) ownEnd() peer.End {
	end := peer.End{
		Status: r.result.Status, Reason: r.result.Reason, Began: r.begin, Running: r.stillRunning,
		Traffic: r.result.Traffic, Tallies: r.result.Tallies,
	}
	if r.history != nil && r.result.Status != record.Passed {
		end.Timeline = r.history.Moments()
	}
	for i, f := range r.result.Failures {
		failure := peer.FailureOf(f)
		failure.Cause = i < r.causes
		end.Failures = append(end.Failures, failure)
	}
	return end
}

// failWith fails a case that has failed in another process only.
func (r *caseRun) failWith(there *peer.End, process string) {
	r.result.Status = record.Failed
	if there.Status == record.Errored {
		r.result.Status, r.result.Reason = record.Errored, there.Reason
	}
	for i := range there.Failures[:min(len(there.Failures), maxFailures)] {
		r.result.Failures = append(r.result.Failures, r.failureThere(&there.Failures[i], process))
	}
	if more := len(there.Failures) - maxFailures; more > 0 {
		last := &r.result.Failures[len(r.result.Failures)-1]
		last.Details = append(
			last.Details, fmt.Sprintf("%d more failures in the process of %s are left out", more, process),
		)
	}
}

// causedBy adds the causes of the failure here from another process.  Its guests and programs that had failed before
// come first.  Those that ran when the step took too long belong to the failure of the step.
func (r *caseRun) causedBy(there *peer.End, process string) {
	var causes []record.Failure
	for i := range there.Failures[:min(len(there.Failures), maxFailures)] {
		if there.Failures[i].Cause {
			causes = append(causes, r.failureThere(&there.Failures[i], process))
		}
	}
	r.result.Failures = append(causes, r.result.Failures...)
	failure := r.stepFailure()
	failure.Details = append(failure.Details, there.Running[:min(len(there.Running), maxFailures)]...)
}

// stepFailure is the failure of the step that ended the case, the first with a timeline.  A guest or program that had
// failed before has none.  There is at least one failure.
func (r *caseRun) stepFailure() *record.Failure {
	return &r.result.Failures[max(0, slices.IndexFunc(r.result.Failures, func(f record.Failure) bool {
		return len(f.Timeline) > 0
	}))]
}

// failureThere is a failure of another process as this process reports it.
func (r *caseRun) failureThere(there *peer.Failure, process string) record.Failure {
	failure := peer.FailureOf(there.Failure).Failure // removes fields that only this process can fill
	failure.File, failure.Hint, failure.Rerun = r.scenario.File, joined(failure.Hint, "in the process of "+process),
		r.config.Rerun
	if failure.Host = r.hostOf(failure.Role); !slices.ContainsFunc(
		slices.Concat(r.testCase.Roles, r.testCase.Elsewhere), func(role testbed.RoleConfig) bool {
			return role.Name == failure.Role
		}) {
		failure.Role = "" // the file has no such role
	}
	return failure
}

// addMoments adds the last steps of another process to the timeline of a failure.  That process's clock is ahead of
// this one's.
func (r *caseRun) addMoments(process string, there peer.End, ahead time.Duration) {
	if len(r.result.Failures) == 0 {
		return
	}
	failure := r.stepFailure()
	shift := there.Began.Add(-ahead).Sub(r.begin.Round(0)) // both are wall-clock times
	for _, moment := range there.Timeline {
		if r.roster.where[moment.Role] == process {
			moment.At += shift
			failure.Timeline = append(failure.Timeline, moment)
		}
	}
	slices.SortStableFunc(failure.Timeline, func(a, b record.Moment) int { return cmp.Compare(a.At, b.At) })
	failure.Timeline = failure.Timeline[max(0, len(failure.Timeline)-timeline.MaxOfAll):]
}

// maxFailures bounds the failures that are taken from another process.
const maxFailures = 100

// maxOperations bounds the operations in the traffic of another process.
const maxOperations = 64
