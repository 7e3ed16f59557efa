package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"rdmarun/host/bus"
	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/exec"
)

// caseStart is the message with which the process that leads a run starts a case in the others.  One without a case is
// the end of the run.
type caseStart struct {
	Case string `json:"case,omitempty"`
	// Number distinguishes the runs of the case, as in relay.
	Number int `json:"number"`
	// With are the processes that take part.
	With []string `json:"with,omitempty"`
}

func caseStartKey(number int) string { return fmt.Sprintf("turn/%d", number) }

// stopKey is the key under which the process that leads ends a case that others are still in.
const stopKey = "stop"

// announce announces a case that runs.  The case must not run where the reason is not empty.
func (p *Participant) announce(each Selected, runs, number int) (with []string, status record.Status, reason string) {
	if reason := p.Controller.Skip[each.Case.ID]; reason != "" {
		return nil, record.Skipped, reason
	}
	for _, role := range each.all {
		name := p.Controller.Players[role.Name]
		if name == "" || slices.Contains(with, name) {
			continue
		}
		if err := p.meeting.Gone(name); err != nil {
			return nil, record.Errored, err.Error()
		}
		with = append(with, name)
	}
	p.meeting.Case(runs, with...) // before it gets messages
	if err := p.meeting.Broadcast(caseStartKey(runs), caseStart{each.Case.ID, number, with}); err != nil {
		return nil, record.Errored, err.Error()
	}
	return with, "", ""
}

// begin has what processes report from here on written as records of the case that runs; nil: of none.
func (l *Controller) begin(stream *record.Stream, each Selected) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current, l.began, l.of = stream, time.Now(), each
}

// take writes what a process reports of what its roles have done.
func (l *Controller) take(from string, data []byte) {
	reported, ok := record.ParseReported(data)
	if !ok {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if role := reported.Role(); l.current == nil || role != "" && l.Players[role] != from {
		return // none of its roles
	}
	reported.Host, reported.File, reported.Case = from, l.of.Scenario.Path, l.of.Case.ID
	brief(reported)
	if !l.quota.take(from, reported, len(data), l.Players) {
		return
	}
	if reported.Device != nil {
		reported.Device.Host = from
	}
	if step := reported.Step; step != nil {
		// Its time is that of its end, and of that host's clock.
		until := time.Since(l.began)
		ended := min(until, max(0, reported.Time.Add(-l.Clocks[from].Ahead).Sub(l.began.Round(0))))
		step.Took = min(until, step.Took)
		step.At = max(0, ended-step.Took)
	}
	l.current.Write(reported)
}

// brief cuts what people read of a record; the fields of a step are data, and some have the bytes of a buffer.
func brief(reported *record.Record) {
	cut := func(text string) string { return printable.Cut(text, maxText) }
	if step := reported.Step; step != nil {
		fields := step.Fields
		step.Fields = nil
		printable.Each(step, cut)
		step.Fields = fields
	}
	printable.Each(reported.Line, cut)
	printable.Each(reported.Measure, cut)
	printable.Each(reported.Device, cut)
}

const (
	// maxReported is how many bytes of records are kept of all processes in a run, maxOfOne of one: they are written
	// to disks.
	maxReported, maxOfOne = 8 << 30, 1 << 30
	// maxText bounds a text of a record: it is as long as a line that a guest prints.
	maxText = 4 << 10
	// Measurements are kept apart from records: their limits are maxReported and maxOfOne divided by
	// this.
	measuredPart = 4
	// maxDevices is how many devices a process reports, which stay in memory.
	maxDevices = 256
)

// quota bounds what processes report and measure.  Its lock is the last in the lock order.
type quota struct {
	mu sync.Mutex
	of map[string]*reportedBy
}

// reportedBy is what one process has reported.
type reportedBy struct {
	bytes   int64
	devices int
	// measured are the bytes of what it has measured.
	measured int64
	// left are the records beyond the quota, since leftOut was last called.
	left int
}

// each is the quota of a process: all that play roles have the same.
func (*quota) each(players map[string]string) int64 {
	processes := make(map[string]bool)
	for _, process := range players {
		processes[process] = true
	}
	return min(maxOfOne, maxReported/int64(max(1, len(processes))))
}

// take takes room for a record of so many bytes; without room it counts the record.
func (r *quota) take(from string, what *record.Record, size int, players map[string]string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := r.by(from)
	if by.bytes+int64(size) > r.each(players) || what.Kind == record.DeviceUsed && by.devices == maxDevices {
		by.left++
		return false
	}
	if by.bytes += int64(size); what.Kind == record.DeviceUsed {
		by.devices++
	}
	return true
}

// measured takes room for what a process has measured in any case of the run.
func (r *quota) measured(from string, size int, players map[string]string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	by := r.by(from)
	if by.measured+int64(size) > r.each(players)/measuredPart {
		return false
	}
	by.measured += int64(size)
	return true
}

// by is what a process has reported.  The lock is held.
func (r *quota) by(from string) *reportedBy {
	if r.of == nil {
		r.of = make(map[string]*reportedBy)
	}
	if r.of[from] == nil {
		r.of[from] = &reportedBy{}
	}
	return r.of[from]
}

// leftOut are sentences on the processes of which there was no room for records since the last call.
func (l *Controller) leftOut() (sentences map[string]string) {
	r := &l.quota
	r.mu.Lock()
	defer r.mu.Unlock()
	sentences = make(map[string]string)
	for from, by := range r.of {
		if by.left > 0 {
			sentences[from] = fmt.Sprintf("host %s: of the records of its roles there is no room for %d: a host has "+
				"%dMiB and %d devices in a run",
				from, by.left, r.each(l.Players)>>20, maxDevices)
		}
		by.left = 0
	}
	return sentences
}

// Report passes a record to the process that leads.
func (p *Participant) Report(ctx context.Context, each *record.Record) error {
	data, err := p.message(each)
	if err != nil {
		return err
	}
	return p.meeting.Report(ctx, data)
}

// message is a record as it is sent.  One that is too long for a message has no fields of its step.  If it still is, a
// line of its role takes its place.  A record without a role gets the first role here, since a line needs one.
func (p *Participant) message(each *record.Record) ([]byte, error) {
	data, err := json.Marshal(each)
	if err == nil && len(data) > bus.Largest && each.Step != nil {
		short := *each.Step
		short.Fields = nil // some have the bytes of a buffer
		whole := *each
		whole.Step = &short
		data, err = json.Marshal(&whole)
	}
	if err == nil && len(data) > bus.Largest {
		instead := record.Line{
			Role: cmp.Or(append([]string{each.Role()}, p.Roles...)...),
			Text: fmt.Sprintf("(a record of %d bytes is left out here: it is too long for a message)", len(data)),
		}
		data, err = json.Marshal(&record.Record{Kind: record.Output, Time: each.Time, Line: &instead})
	}
	return data, err
}

// follow runs the cases that the process which leads hands out.
func (j *jobs) follow(ctx context.Context) {
	participant := j.config.Participant
	for {
		j.runs++
		_, raw, err := participant.meeting.Await(ctx, participant.ControllerName, caseStartKey(j.runs))
		var next caseStart
		if err != nil || json.Unmarshal(raw, &next) != nil || next.Case == "" {
			return
		}
		i := slices.IndexFunc(j.cases, func(each Selected) bool { return each.Case.ID == next.Case })
		if i < 0 || !slices.Contains(next.With, participant.meeting.Name()) {
			participant.meeting.Case(j.runs).Close()
			continue
		}
		relay := &relay{jobs: j, number: next.Number, attempt: 1, earlier: j.config.Baseline[next.Case]}
		running, cancel := context.WithCancelCause(ctx)
		mailbox := participant.meeting.Case(j.runs)
		go func() {
			if _, _, err := mailbox.Await(running, participant.ControllerName, stopKey); err == nil {
				err = errors.New("the controller has ended the case")
				cancel(err)
			} else if running.Err() == nil {
				cancel(err)
			}
		}()
		j.one(running, j.cases[i], relay, next.With, nil)
		cancel(nil)
		j.totals.Count(&relay.result)
	}
}

// meets fills in how the others of a case are reached.
func (p *Participant) meets(config *exec.Config, each Selected, runs int, with []string) {
	config.Mailbox, config.Player, config.Addresses = p.meeting.Case(runs, with...), p.meeting.Player, p.Addresses
	config.Key, config.IsController, config.Controller = p.keys[each.Case.ID], p.Controller != nil, p.ControllerName
	if p.Controller != nil {
		config.Clocks, config.Modules = p.Controller.Clocks, make(map[string]string)
		for _, role := range each.all {
			if role.Guest != nil {
				config.Modules[role.Name] = role.Guest.Module
			}
		}
		config.Reserve = func(process string, bytes int) bool {
			return p.Controller.quota.measured(process, bytes, p.Controller.Players)
		}
		config.Reported = p.meeting.Reported
		config.Stop = func() { _ = config.Mailbox.Broadcast(stopKey, true) } // who is gone needs none
	}
	if config.Others = p.meeting.Others(); with != nil {
		config.Others = append(slices.Clone(with), p.ControllerName)
	}
	config.Others = slices.DeleteFunc(slices.Clone(config.Others), func(name string) bool {
		return name == "" || name == p.meeting.Name()
	})
}
