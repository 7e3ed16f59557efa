package scenario

import (
	"rdmarun/host/record"
	"rdmarun/rdmacore"
)

// relay passes the records of one attempt of a case to the stream of the run, and judges its end: whether
// the attempt counts, and whether a skip does.
type relay struct {
	stream *record.Stream
	// hold keeps records until the case ends, so that those of cases that run at once do not mix.
	hold bool
	held []*record.Record
	// strict makes a failure of a skip.
	strict bool
	// number tells the runs of one case apart, from 0.
	number int
	// attempt counts those of one round from 1; last tells that no further one follows.
	attempt int
	last    bool
	// provider is the attempt's, once it is open; devices writes of those that it runs on.
	provider *rdmacore.Provider
	devices  *jobs
	// earlier is what the baseline has of the case; nil: nothing.
	earlier *record.Earlier

	result record.Result
	retry  bool
	unmet  int // thresholds that did not hold
}

// Wants implements record.Consumer.
func (r *relay) Wants(kind record.Kind) bool {
	return r.stream.Wants(kind) || kind == record.CaseEnd || kind == record.Checked
}

// Record implements record.Consumer.
func (r *relay) Record(each *record.Record) error {
	kept := *each
	kept.Attempt = r.number
	if each.Threshold != nil && !each.Threshold.OK {
		r.unmet++
	}
	if each.Kind == record.CaseEnd {
		r.end(&kept)
	}
	if each.Kind == record.CaseStart {
		r.devices.noteDevices(r.provider, each.Start.Roles)
		defer r.before(&kept)
	}
	if !r.hold {
		r.stream.Forward(&kept)
		return nil
	}
	if each.Kind == record.CaseStart {
		r.stream.Announce(&kept)
	}
	if kept.Step != nil {
		step := *kept.Step
		kept.Step = &step
	}
	r.held = append(r.held, &kept)
	if each.Kind == record.CaseEnd {
		r.stream.Forward(r.held...)
		r.hold, r.held = false, nil
	}
	return nil
}

// before passes on what the baseline has measured, behind the beginning of the case.
func (r *relay) before(start *record.Record) {
	if r.earlier == nil || !r.stream.Wants(record.Before) {
		return
	}
	for i := range r.earlier.Measures {
		each := *start
		each.Kind, each.Start, each.Measure = record.Before, nil, &r.earlier.Measures[i]
		if r.hold {
			r.held = append(r.held, &each)
		} else {
			r.stream.Forward(&each)
		}
	}
}

// end judges the end of the attempt.
func (r *relay) end(each *record.Record) {
	result := *each.Result
	if r.strict && result.Status == record.Skipped {
		result.Status = record.Failed
		result.Failures = append(result.Failures, record.Failure{
			Kind: "skipped", File: each.File, What: "skipped, and --strict allows no skip",
			Got: result.Reason,
		})
	}
	// An error of the surroundings and an end from outside would only come again, and a measurement that is repeated
	// until it is fast enough is none.
	r.retry = result.Status == record.Failed && !r.last && !r.skipped(&result) && !result.FailedByThreshold()
	if r.attempt > 1 || r.retry {
		result.Attempts = r.attempt
	}
	if result.Status == record.Passed && r.attempt > 1 {
		result.Reason = record.FlakyReason
	}
	if r.retry {
		each.Kind = record.CaseRetry
		result.Reason = "it is tried again"
	}
	each.Result = &result
	r.result = result
}

func (r *relay) skipped(result *record.Result) bool {
	return len(result.Failures) > 0 && result.Failures[len(result.Failures)-1].Kind == "skipped"
}
