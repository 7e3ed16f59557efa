package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

// FailureCapture keeps what soft sends around the failures of cases.  Cases may run at once.
type FailureCapture interface {
	// Begin begins the recording of one run of a case. Runs are numbered from 0. processes are those that play its
	// roles, if this one plays none.
	Begin(id string, number int, processes []string) (Recording, error)
}

// Recording captures one run of a case.
type Recording interface {
	// Capture is what its providers write to; nil where those of other processes do.
	Capture() *rdmacore.Capture
	// Failed notes when the case failed, in the time of packets; the first time counts.
	Failed(at uint64)
	// End ends it, when the providers are closed, and returns the path of what it has kept; "" for nothing.
	End(failed bool) (path string, err error)
}

// record begins the recording of an attempt, and returns what its providers write to.  with are the processes that play
// its roles, where this one leads them: those record, also of roles that are not on soft.
func (j *jobs) record(each Selected, relay *relay, with []string) (*rdmacore.Capture, error) {
	participant := j.config.Participant
	if j.config.OnFailure == nil || !j.on.onSoft(each) &&
		(participant == nil || participant.Controller == nil && participant.ControllerName == "") {
		return j.config.Capture, nil
	}
	relay.run, relay.with = j.runs, with
	recording, err := j.config.OnFailure.Begin(each.Case.ID, relay.number, with)
	if err != nil {
		return nil, fmt.Errorf("capture its packets: %w", err)
	}
	relay.recording = recording
	if !j.on.onSoft(each) {
		return nil, nil
	}
	return recording.Capture(), nil
}

// failedAt notes when the case failed.
func (r *relay) failedAt(each *record.Record) {
	if r.recording != nil && !each.Step.OK && each.Step.XFail == "" && r.providers.First() != nil {
		r.recording.Failed(r.providers.First().Clock().CaptureTime())
	}
}

// complete ends the recording of the attempt, and passes on its end, which names the file.
func (r *relay) complete() {
	if r.recording == nil {
		return
	}
	failed, err := r.jobs.config.Participant.caseFailed(r, r.ended != nil && !r.result.Status.OK())
	path, wrong := r.recording.End(failed)
	err = errors.Join(err, wrong)
	if err != nil && r.jobs.config.Warn != nil {
		r.jobs.config.Warn(fmt.Sprintf("--capture-on-failure: case %s: %v", r.result.Name, err))
	}
	r.recording = nil
	if r.ended == nil {
		return
	}
	r.result.Capture = path
	result := r.result
	r.ended.Result = &result
	r.pass(r.ended)
	r.release()
}

// caseFailedTimeout bounds the wait for the controller's result of a case, which it has when all processes have
// ended it.
const caseFailedTimeout = time.Minute

func caseFailedKey(run int) string { return fmt.Sprintf("verdict/%d", run) }

// caseFailed reports whether a case failed. Only the process that leads a run can decide that: a threshold may have
// failed there, or a step in one process alone.
func (p *Participant) caseFailed(r *relay, failed bool) (bool, error) {
	switch {
	case p == nil || p.Controller == nil && p.ControllerName == "":
		return failed, nil
	case p.Controller != nil:
		for _, process := range r.with {
			_ = p.meeting.Send(process, caseFailedKey(r.run), failed) // a process that is gone needs none
		}
		return failed, nil
	}
	waiting, cancel := context.WithTimeout(context.Background(), caseFailedTimeout) // what ran may have been ended
	defer cancel()
	_, raw, err := p.meeting.Await(waiting, p.ControllerName, caseFailedKey(r.run))
	if err == nil {
		err = json.Unmarshal(raw, &failed)
	}
	return failed && err == nil, err
}
