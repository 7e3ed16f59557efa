package exec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/verb"
)

// measure sets the functions of a call that take results of measurements, and the limits that end measurements early.
func (r *caseRun) measure(step *compile.Step, call *verb.Call) {
	call.Measured = func(found []*record.Measure) { r.measured(step, found) }
	r.watch(call, func(m *record.Measure) { r.locate(step, m) })
	if r.config.NoThresholds {
		return
	}
	if broken := r.checker().Watch(); broken != nil {
		call.Abort = func(found []*record.Measure) bool {
			for _, m := range found {
				r.locate(step, m)
			}
			return broken(found)
		}
	}
}

// measured takes the results of a step for one size.
func (r *caseRun) measured(step *compile.Step, found []*record.Measure) {
	r.addMeasured(found, func(m *record.Measure) { r.locate(step, m) })
	if r.position.sending {
		err := peer.SendMeasured(r.config.Mailbox, r.measuredKey(r.position.sentParts), found)
		r.position.sentParts++
		r.position.sendErr = cmp.Or(r.position.sendErr, err)
	}
}

// addMeasured adds results, of this process or another.
func (r *caseRun) addMeasured(found []*record.Measure, locate func(*record.Measure)) {
	for _, m := range found {
		locate(m)
		r.write(record.Record{Kind: record.Measured, Measure: m})
	}
	r.found = append(r.found, found)
	r.ended.Add(1) // not stalled
}

// watch sets the function of a call that takes the figures of a running measurement, also when they come from another
// process.
func (r *caseRun) watch(call *verb.Call, locate func(*record.Measure)) {
	// the controller gets the intervals of the step's owner
	call.Interval, call.ShowsIntervals = r.config.Interval, r.config.Controller == ""
	call.Measuring = func(part []*record.Measure) {
		for _, m := range part {
			locate(m)
			r.write(record.Record{Kind: record.Measuring, Measure: m})
		}
	}
}

// watchHalf is watch for half a measurement in a step that another process owns: it uses that step's name and tags.
func (r *caseRun) watchHalf(step *compile.Step, half *verb.Call) error {
	names := r.path
	if step.Name != nil {
		name, err := step.Name.Get(r.env)
		if err != nil {
			return err
		}
		names = []string{name.(string)}
	}
	tags, err := r.tagsIn(step)
	if err != nil {
		return err
	}
	r.watch(half, func(m *record.Measure) { r.label(step, m, names, tags) })
	return nil
}

// locate sets the step of a measurement.  The run does not change while one of its steps measures, so any of its
// goroutines may call it.
func (r *caseRun) locate(step *compile.Step, m *record.Measure) { r.label(step, m, r.path, r.tags) }

// label sets the place of a measurement in the file, its name and its tags.  The name is the last of names, or the
// type.
func (r *caseRun) label(step *compile.Step, m *record.Measure, names []string, tags map[string]string) {
	switch {
	case m.Printed != nil: // by a program, under a name of its own
	case len(names) > 0:
		m.Name = names[len(names)-1]
	default:
		m.Name = strings.TrimSpace(m.Type + " " + m.Operation)
	}
	own := m.Tags // the tags of a stage
	if m.Tags = tags; len(own) > 0 {
		m.Tags = make(map[string]string, len(tags)+len(own))
		maps.Copy(m.Tags, tags)
		maps.Copy(m.Tags, own)
	}
	r.locateIn(step, m)
}

// locateIn sets the place of a measurement in the file.
func (r *caseRun) locateIn(step *compile.Step, m *record.Measure) {
	m.File, m.Line, m.Column = "", step.Span.Line, step.Span.Column
	if file := step.Span.File(); file != r.scenario.File {
		m.File = file
	}
}

// measuredKey is the key of the message with the results of the n-th size.
func (r *caseRun) measuredKey(n int) string {
	return fmt.Sprintf("%s/measured/%d", r.position.Key(), n)
}

// maxFound bounds the measurements of other processes in a case, each of which may be written to a file.
const maxFound = 1 << 16

// takeRoom counts the bytes of another process's results, in the case and in the run.
func (o *remote) takeRoom(r *caseRun, process string, raw json.RawMessage) error {
	if r.config.Reserve != nil && !r.config.Reserve(process, len(raw)) {
		return fmt.Errorf("this run has no room for more measurements of the process of %s", process)
	}
	return o.Spend(process, raw)
}

// Receive adds the results of a step of another process.
func (c *remoteCall) Receive(raw json.RawMessage) error {
	r := c.run
	if err := c.remote.takeRoom(r, c.owner, raw); err != nil {
		return err
	}
	if len(r.found) == maxFound {
		return fmt.Errorf("the process of %s sent more than %d measurements in one case", c.owner, maxFound)
	}
	found, err := peer.ReadMeasured(raw, c.owner, r.rolesOf(c.call))
	if err != nil {
		return fmt.Errorf("the measurement of line %d: %w", c.step.Span.Line, err)
	}
	r.addMeasured(found, func(m *record.Measure) { r.locateIn(c.step, m) })
	return nil
}
