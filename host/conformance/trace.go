package conformance

import (
	"fmt"
	"io"

	"rdmarun/host/output/cases"
	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
)

// Run is the traces of a run, in the order in which its cases ended.
type Run struct {
	// Name is the provider, Kernel the release of the kernel under it.
	Name, Kernel string
	Traces       []*Trace
	byID         map[string]*Trace
}

// Trace is what a case did.
type Trace struct {
	ID     string
	Status record.Status
	Reason string
	roles  []string
	calls  map[string][]call
}

// call is one step of a role: what it was asked and what it got, without what varies between runs.
type call struct {
	action, text string
	number       int // among the role's calls of the same action, from 1
	ok           bool
	errno        string
	fields       []record.Field
}

// maxSteps is how many steps of a case are compared; a longer case is compared at its ends.
const maxSteps = 100_000

// Read reads the records of a run.  A case that ran more than once counts as it ended last.
func Read(in io.Reader, name string) (*Run, error) {
	run := &Run{byID: make(map[string]*Trace)}
	tracker := cases.NewTracker(cases.Limits{Steps: maxSteps})
	_, err := jsonl.Read(in, name, func(r *record.Record) error {
		if r.Kind == record.RunStart {
			run.Name, run.Kernel = r.Run.Provider, r.Run.Environment["kernel"]
		}
		if c := tracker.Record(r); c != nil {
			run.add(c)
		}
		return nil
	})
	for _, c := range tracker.Unfinished() {
		run.add(c)
	}
	return run, err
}

// Join adds another run on the same provider and kernel: some cases are run apart from the others, because they take
// long.
func (r *Run) Join(other *Run) error {
	if r.Name != other.Name || r.Kernel != other.Kernel {
		return fmt.Errorf("one run is of %s on kernel %q, another of %s on kernel %q: the parts of a run are of one "+
			"machine",
			r.Name, r.Kernel, other.Name, other.Kernel)
	}
	for _, trace := range other.Traces {
		if known := r.trace(trace.ID); known == nil || trace.ran() {
			r.put(trace)
		}
	}
	return nil
}

func (r *Run) add(c *cases.Case) { r.put(newTrace(c)) }

func (r *Run) put(trace *Trace) {
	if known := r.trace(trace.ID); known != nil {
		*known = *trace
		return
	}
	r.byID[trace.ID] = trace
	r.Traces = append(r.Traces, trace)
}

// trace finds the trace of a case, or nil.
func (r *Run) trace(id string) *Trace { return r.byID[id] }

// newTrace splits a case by role: branches of `parallel` run in any order, but the calls of one role have one order.
func newTrace(c *cases.Case) *Trace {
	trace := &Trace{ID: c.ID, Status: c.Result.Status, Reason: c.Message(), calls: make(map[string][]call)}
	numbers := make(map[[2]string]int)
	for _, step := range c.Steps.All() {
		if _, known := trace.calls[step.Role]; !known {
			trace.roles = append(trace.roles, step.Role)
		}
		numbers[[2]string{step.Role, step.Action}]++
		one := call{
			action: step.Action, text: step.Text, number: numbers[[2]string{step.Role, step.Action}], ok: step.OK,
			errno: step.Errno,
		}
		for _, field := range step.Fields {
			if !field.Varies {
				one.fields = append(one.fields, field)
			}
		}
		trace.calls[step.Role] = append(trace.calls[step.Role], one)
	}
	return trace
}

// ran reports whether the case was run at all.
func (t *Trace) ran() bool { return t.Status != record.Skipped }
