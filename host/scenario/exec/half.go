package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// A step that works on roles of several processes is a step of the one that has its first role, as every step is of one
// process.  Each other process with roles of it walks into the same step with its part, while it waits for the step's
// outcome, which ends the part as well: of a measurement half of the work, of a barrier its guests.  What is measured all
// others are told, a size at a time.

// half runs the part of a step that another process runs; nil where there is none here.
func (r *caseRun) half(call *compile.Call, owner string) func(context.Context) {
	if !r.divides(call) {
		return nil
	}
	return func(ctx context.Context) {
		half := verb.Call{Verb: call.Verb, Testbed: r.testbed, Counterpart: r.counterpart}
		own := r.member(owner, r.others.meeting.Name(), "member", "owner")
		half.Meet = func(context.Context) error { return own.join(ctx) }
		advance := r.advances.begin("", 0)
		defer r.advances.end(advance)
		half.Advance = func(what string, at, of int) {
			r.advances.part(advance, what, at, of)
			r.ended.Add(1) // not stalled
		}
		var err error
		if half.Arguments, err = r.evaluate(nil, call.Arguments); err == nil {
			err = call.Verb.Run(ctx, &half)
		}
		if err != nil && !call.Verb.Measures { // whose halves have told each other
			_ = own.Say(met{Failed: r.failureTold(err)})
		}
	}
}

// divides tells whether some of the roles that a step works on are here, and others are not.
func (r *caseRun) divides(call *compile.Call) bool {
	if !call.Verb.Divides {
		return false
	}
	var here, elsewhere bool
	for _, role := range r.rolesOf(call) {
		if r.others.where[role] == "" {
			here = true
		} else {
			elsewhere = true
		}
	}
	return here && elsewhere
}

// failureTold is what the others are told of the failure of a step.
func (r *caseRun) failureTold(err error) *failureTold {
	failure := toldOf(r.describe(err))
	var late *overtime
	failure.Late = errors.As(err, &late) && late.ofStep
	return &failure
}

// rolesOf are the roles that the arguments of a call name.
func (r *caseRun) rolesOf(call *compile.Call) (roles []string) {
	for i, argument := range call.Verb.Arguments {
		if i < len(call.Arguments) && call.Arguments[i] != nil && verb.NamesRoles(argument.Type) {
			value, _ := call.Arguments[i].Get(r.env) // its error is that of the step
			roles = append(roles, verb.RolesNamed(argument.Type, value)...)
		}
	}
	return roles
}

// met is what a process says at a barrier: it is there, or never will be; or that it is open.
type met struct {
	Failed *failureTold `json:"failed,omitempty"`
}

// join says that everybody here is at a barrier, and waits until it is open.
func (c *counterpart) join(ctx context.Context) error {
	if err := c.Say(met{}); err != nil {
		return err
	}
	return c.Hear(ctx, &met{})
}

// meet waits until everybody elsewhere is at a barrier, of a step that is this process's, and opens it there.
func (r *caseRun) meet(call *compile.Call) func(ctx context.Context) error {
	if call.Verb.Measures || !r.divides(call) {
		return nil
	}
	var members []*counterpart
	seen := make(map[string]bool)
	for _, role := range r.rolesOf(call) {
		if name := r.others.where[role]; name != "" && !seen[name] {
			seen[name] = true
			members = append(members, r.member(name, name, "owner", "member"))
		}
	}
	return func(ctx context.Context) error {
		for _, each := range members {
			var there met
			err := each.Hear(ctx, &there)
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				return &testbed.Failure{What: "the barrier stays closed", Expected: "the guests in the process of " + each.process, Got: "they have not come"}
			case err != nil:
				return err
			case there.Failed != nil:
				return there.Failed.failure()
			}
		}
		for _, each := range members {
			if err := each.Say(met{}); err != nil {
				return err
			}
		}
		return nil
	}
}

// member is the way between the process that has a step and another one with a part of it, whose name the keys have.
func (r *caseRun) member(process, name, said, heard string) *counterpart {
	return &counterpart{others: r.others, process: process, key: fmt.Sprintf("%s/%s/", r.stepKey(), name), said: said, heard: heard}
}

// counterpart is the process with the role of the two that is not here.
func (r *caseRun) counterpart(from, to string) verb.Counterpart {
	return r.counterpartIn(r.stepKey()+"/", from, to)
}

// counterpartIn is counterpart where a step has several such halves: prefix tells them apart.
func (r *caseRun) counterpartIn(prefix, from, to string) verb.Counterpart {
	c := &counterpart{others: r.others, said: "from", heard: "to", process: r.others.where[to]}
	if process := r.others.where[from]; process != "" {
		c.said, c.heard, c.process = "to", "from", process
	}
	c.key = fmt.Sprintf("%s%s>%s/", prefix, from, to)
	return c
}

// counterpart hears and tells another process what is of a step that both have a part of.
type counterpart struct {
	others      *others
	process     string
	key         string // of the step and the two
	said, heard string // who says it
	saying      int
	hearing     int
}

func (c *counterpart) Say(value any) error {
	c.saying++
	return c.others.meeting.Send(c.process, fmt.Sprintf("%s%s/%d", c.key, c.said, c.saying), value)
}

func (c *counterpart) Hear(ctx context.Context, into any) error {
	c.hearing++
	_, raw, err := c.others.hear(ctx, c.process, fmt.Sprintf("%s%s/%d", c.key, c.heard, c.hearing))
	if gone, is := err.(*meeting.GoneError); is { //nolint:errorlint // as it is made
		return &testbed.EnvironmentError{What: "wait for the other part of the step", Err: gone}
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}

// judgedTogether has the process with the first role check the thresholds, and the others heed what it says: so a time of a
// clock, or an earlier run, is held against the limits once.
func (r *caseRun) judgedTogether(ctx context.Context, took time.Duration) {
	o := r.others
	key := o.key("thresholds", "")
	if o.judge == "" {
		verdicts := r.judged(took)
		if err := o.meeting.Tell(key, verdicts); err != nil {
			r.fail(&testbed.EnvironmentError{What: "tell the other processes of the thresholds", Err: err})
		}
		r.heed(verdicts)
		return
	}
	var raw json.RawMessage
	var err error
	r.testbed.Unlocked(func() {
		r.testbed.Clock().Outside(func() { _, raw, err = o.hear(ctx, o.judge, key) })
	})
	if err != nil {
		return // part says why that process has ended
	}
	verdicts, err := r.verdictsOf(raw)
	if err != nil {
		r.fail(&testbed.EnvironmentError{What: "what the process of " + o.judge + " says of the thresholds", Err: err})
		return
	}
	r.heed(verdicts)
}

// verdictsOf reads what the process says that judges: each limit has one verdict at most.  What the limit is the file says, and
// how a limit was held that process.
func (r *caseRun) verdictsOf(raw json.RawMessage) (verdicts []verdict, err error) {
	if err = json.Unmarshal(raw, &verdicts); err != nil {
		return nil, err
	}
	type place struct{ threshold, limit int }
	seen := make(map[place]bool)
	for i := range verdicts {
		each := &verdicts[i]
		if list := r.testCase.Thresholds; each.Threshold < 0 || each.Threshold >= len(list) || each.Limit < 0 || each.Limit >= len(list[each.Threshold].Limits) {
			return nil, fmt.Errorf("there is no limit %d of a threshold %d", each.Limit, each.Threshold)
		}
		threshold := r.testCase.Thresholds[each.Threshold]
		limit := &threshold.Limits[each.Limit]
		own := unchecked(threshold, limit)
		if seen[place{each.Threshold, each.Limit}] {
			return nil, fmt.Errorf("two verdicts on %s", own.Text)
		}
		seen[place{each.Threshold, each.Limit}] = true
		own.OK, own.Value, own.Reason = each.Checked.OK, verb.Brief(each.Checked.Value), verb.Brief(each.Checked.Reason)
		each.Checked = own
	}
	return verdicts, nil
}

// tellBaseline tells the others what an earlier run has found, where thresholds may want it: who judges may not have it.
func (r *caseRun) tellBaseline(begin *beginning) error {
	if r.config.Baseline == nil || len(r.testCase.Thresholds) == 0 {
		return nil
	}
	o := r.others
	for i := range r.config.Baseline.Measures {
		if err := o.meeting.Tell(o.baseline(o.meeting.Name(), i), withoutHistograms(&r.config.Baseline.Measures[i])); err != nil {
			return fmt.Errorf("tell the baseline: %w", err)
		}
	}
	count := len(r.config.Baseline.Measures)
	begin.Baseline = &count
	return nil
}

// takeBaseline takes what a process has told of an earlier run, unless this one has that itself.
func (r *caseRun) takeBaseline(ctx context.Context, name string, count *int) error {
	o := r.others
	if count == nil || r.config.Baseline != nil {
		return nil
	}
	if *count < 0 || *count > mostBaseline {
		return fmt.Errorf("the baseline of %s: it has %d measurements", name, *count)
	}
	earlier := &record.Earlier{}
	for i := range *count {
		var m record.Measure
		if err := o.await(ctx, name, o.baseline(name, i), &m); err != nil {
			return fmt.Errorf("the baseline of %s: %w", name, err)
		}
		if err := m.Check(); err != nil {
			return fmt.Errorf("the baseline of %s: %w", name, err)
		}
		earlier.Measures = append(earlier.Measures, m)
	}
	r.config.Baseline = earlier
	return nil
}

// mostBaseline bounds the measurements of an earlier run that another process tells.
const mostBaseline = 1 << 16

func (o *others) baseline(name string, i int) string {
	return fmt.Sprintf("%s/%d", o.key("baseline", name), i)
}

// measured is the key of what is measured of the n-th size.
func (r *caseRun) measuredKey(n int) string { return fmt.Sprintf("%s/measured/%d", r.stepKey(), n) }

// longestMeasured bounds what is told of a size.  Whole histograms are the first to be left out.
const longestMeasured = 512 << 10

// tellMeasured tells the others what is measured.
func (r *caseRun) tellMeasured(found measured) error {
	raw, err := json.Marshal(found)
	if err == nil && len(raw) > longestMeasured {
		found = slices.Clone(found)
		for i, each := range found {
			found[i] = withoutHistograms(each)
		}
		raw, err = json.Marshal(found)
	}
	if err != nil {
		return err
	}
	key := r.measuredKey(r.turns.told)
	r.turns.told++
	return r.others.meeting.Tell(key, json.RawMessage(raw))
}

func withoutHistograms(m *record.Measure) *record.Measure {
	short := *m
	short.Latency = slices.Clone(m.Latency)
	for i := range short.Latency {
		short.Latency[i].HDR = ""
	}
	return &short
}

// takeMeasured takes what another process has measured.
func (r *caseRun) takeMeasured(step *compile.Step, call *compile.Call, process string, raw json.RawMessage) error {
	if err := r.others.spend(process, raw); err != nil {
		return err
	}
	var found measured
	if err := json.Unmarshal(raw, &found); err != nil {
		return err
	}
	if len(found) == 0 || len(found) > 2 || slices.Contains(found, nil) {
		return fmt.Errorf("what is measured in line %d cannot be read", step.Span.Line)
	}
	roles := r.rolesOf(call)
	for _, m := range found {
		if err := m.Check(); err != nil {
			return fmt.Errorf("the process of %s tells what cannot be true: %w", process, err)
		}
		if !slices.Contains(roles, m.Role) || m.Peer != "" && !slices.Contains(roles, m.Peer) {
			return fmt.Errorf("the process of %s has measured from %.80q to %.80q, which are not the roles of the step", process, m.Role, m.Peer)
		}
	}
	for _, m := range found {
		r.locateIn(step, m)
		r.config.Stream.Write(&record.Record{Kind: record.Measured, File: r.program.File, Case: r.testCase.ID, Measure: m})
	}
	r.found = append(r.found, found)
	r.ended.Add(1) // not stalled
	return nil
}
