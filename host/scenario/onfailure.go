package scenario

import (
	"fmt"

	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

// FailureCapture keeps what soft sends around the failures of cases.  Cases may run at once.
type FailureCapture interface {
	// Begin begins the recording of one run of a case, which are numbered from 0.
	Begin(id string, number int) (Recording, error)
}

// Recording captures one run of a case.
type Recording interface {
	// Capture is what its providers write to.
	Capture() *rdmacore.Capture
	// Failed tells when the case failed, in the time of packets; the first time counts.
	Failed(at uint64)
	// End ends it, when the providers are closed, and returns the path of what it has kept; "" for nothing.
	End(failed bool) (path string, err error)
}

// record begins the recording of an attempt, and returns what its providers write to.
func (j *jobs) record(each Selected, relay *relay) (*rdmacore.Capture, error) {
	leads := j.config.Party != nil && j.config.Party.Leads != nil
	if j.config.OnFailure == nil || leads || !j.on.onSoft(each) {
		return j.config.Capture, nil
	}
	recording, err := j.config.OnFailure.Begin(each.Case.ID, relay.number)
	if err != nil {
		return nil, fmt.Errorf("capture its packets: %w", err)
	}
	relay.recording = recording
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
	path, err := r.recording.End(r.ended != nil && !r.result.Status.OK())
	if err != nil && r.jobs.config.Warn != nil {
		r.jobs.config.Warn(fmt.Sprintf("--capture-on-failure: packets are missing: %v", err))
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
