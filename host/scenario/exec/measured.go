package exec

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/verb"
)

// measure gives a call what it tells of its measurements to, and who may end them.
func (r *caseRun) measure(step *compile.Step, call *verb.Call) {
	call.Measured = func(found []*record.Measure) {
		for _, m := range found {
			r.locate(step, m)
			r.config.Stream.Write(&record.Record{
				Kind: record.Measured, File: r.program.File, Case: r.testCase.ID, Measure: m,
			})
		}
		r.found = append(r.found, found)
		r.ended.Add(1) // not stalled
		if r.turns.telling {
			r.turns.untold = cmp.Or(r.turns.untold, r.tellMeasured(found))
		}
	}
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

// watch has a call tell what its measurement does while it runs, also where its figures are those of another process.
func (r *caseRun) watch(call *verb.Call, locate func(*record.Measure)) {
	// the process that leads hears it of that one
	call.Interval, call.Follows = r.config.Interval, r.config.Leader == ""
	call.Measuring = func(part []*record.Measure) {
		for _, m := range part {
			locate(m)
			r.config.Stream.Write(&record.Record{
				Kind: record.Measuring, File: r.program.File, Case: r.testCase.ID, Measure: m,
			})
		}
	}
}

// watchHalf has the half of a measurement tell what the whole one does: under the names of the step, which is of
// another process.
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

// locate says which step of the file a measurement is of.  Nothing of the run changes while one of its steps measures,
// so any goroutine of it may ask.
func (r *caseRun) locate(step *compile.Step, m *record.Measure) { r.label(step, m, r.path, r.tags) }

// label says where in the file a measurement stands, and what it is called: by the last of the names and the tags
// around it.
func (r *caseRun) label(step *compile.Step, m *record.Measure, names []string, tags map[string]string) {
	m.Name = m.Type
	if m.Operation != "" {
		m.Name += " " + m.Operation
	}
	if len(names) > 0 {
		m.Name = names[len(names)-1]
	}
	own := m.Tags // of a stage
	if m.Tags = tags; len(own) > 0 {
		m.Tags = make(map[string]string, len(tags)+len(own))
		maps.Copy(m.Tags, tags)
		maps.Copy(m.Tags, own)
	}
	r.locateIn(step, m)
}

// locateIn says where in the file a measurement stands.
func (r *caseRun) locateIn(step *compile.Step, m *record.Measure) {
	m.File, m.Line, m.Column = "", step.Span.Line, step.Span.Column
	if file := step.Span.File(); file != r.program.File {
		m.File = file
	}
}

// measured is the key of what is measured of the n-th size.
func (r *caseRun) measuredKey(n int) string { return fmt.Sprintf("%s/measured/%d", r.stepKey(), n) }

// tellMeasured tells the others what is measured.
func (r *caseRun) tellMeasured(found []*record.Measure) error {
	key := r.measuredKey(r.turns.told)
	r.turns.told++
	return peer.TellMeasured(r.config.Mailbox, key, found)
}

// mostFound bounds the measurements of a case in other processes: each may be a file.
const mostFound = 1 << 16

// takeRoom counts what another process has measured, in the case and in the run.
func (o *remote) takeRoom(r *caseRun, process string, raw json.RawMessage) error {
	if r.config.Room != nil && !r.config.Room(process, len(raw)) {
		return fmt.Errorf("in this run there is no room for more of what the process of %s has measured", process)
	}
	return o.Spend(process, raw)
}

// takeMeasured takes what another process has measured.
func (o *remote) takeMeasured(
	r *caseRun, step *compile.Step, call *compile.Call, process string, raw json.RawMessage,
) error {
	if err := o.takeRoom(r, process, raw); err != nil {
		return err
	}
	if len(r.found) == mostFound {
		return fmt.Errorf("the process of %s tells of more than %d measurements in one case", process, mostFound)
	}
	found, err := peer.ReadMeasured(raw, process, r.rolesOf(call))
	if err != nil {
		return fmt.Errorf("the measurement of line %d: %w", step.Span.Line, err)
	}
	for _, m := range found {
		r.locateIn(step, m)
		r.config.Stream.Write(&record.Record{
			Kind: record.Measured, File: r.program.File, Case: r.testCase.ID, Measure: m,
		})
	}
	r.found = append(r.found, found)
	r.ended.Add(1) // not stalled
	return nil
}
