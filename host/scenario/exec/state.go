package exec

import (
	"sync/atomic"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/progress"
	"rdmarun/host/scenario/skip"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/timeline"
	"rdmarun/host/scenario/verb"
)

// caseRun is the state of a running case.
type caseRun struct {
	config   Config
	program  *compile.Program
	testCase *compile.Case
	testbed  *testbed.Testbed
	env      expression.Env
	begin    time.Time
	// clockBegin is when the case began on the provider's clock.
	clockBegin time.Duration
	result     record.Result
	history    *timeline.History // of all branches
	loops      timeline.Loops
	// found are the measurements of one size each, at each end that has measured something.
	found [][]*record.Measure
	// begun are the fixtures whose setup has begun, in that order.
	begun []*compile.Fixture
	// kept is set if what the case shares with others is left to the next one.
	kept bool
	// path holds the names of the steps around the current one.
	path []string
	// uses are the steps that use the fragments around the current step, the outermost first.
	uses []*compile.Step
	// tags are those of the current step and of those around it; a map is never changed once it is here.
	tags map[string]string
	// known says why the current step, or one around it, is known to fail; "" when none is.
	known string
	// xfail is that of the case, if it is known to fail here.
	xfail *compile.XFail
	// steps counts actions; ended does, too, for who watches from another goroutine.
	steps int
	// tallies are those of all branches, until the case ends.
	tallies *record.Tallies
	ended   *atomic.Int64
	// away is how many loops this process waits for that others run, and watch themselves.
	away *atomic.Int64
	// advances are how far the running steps are.
	advances *progress.Steps
	// given are the results that this branch gave names to; lists are those under one word, of all branches.
	given map[string]any
	lists map[ownedName]*sharedList
	// wantSteps tells whether some output wants a record of each step.
	wantSteps bool
	// packets finds the packets of steps, of all branches; nil where they are not captured.
	packets *timeline.Packets
	// running is the call of the verb that runs, one at a time; the next step overwrites it, so nothing may keep it.
	running verb.Call
	// owned are the results of each instance of a counted role: in a step of its own it sees these.
	owned map[string]map[string]any
	// roleObjects are what expressions see of roles.
	roleObjects map[string]map[string]any
	// peers play the other roles, in turns with this process; roster is where these are.
	peers  peers
	roster *roster
	turns  turns
	// common is set while a step runs that every process has.
	common bool
}

// environmentNames fills in what expressions may mention from the start.
func (r *caseRun) environmentNames() error {
	r.env = make(expression.Env)
	r.given, r.lists = make(map[string]any), make(map[ownedName]*sharedList)
	for _, param := range r.testCase.Constants {
		r.env[param.Name] = param.Value
	}
	r.roleObjects, r.owned = make(map[string]map[string]any), make(map[string]map[string]any)
	for _, role := range r.testbed.Roles() {
		object, err := skip.RoleFacts(role)
		if err != nil {
			return err
		}
		r.showRole(role.Name, role.Group, role.Index, object)
	}
	r.env[compile.Recount] = func() {
		for _, role := range r.testbed.Roles() {
			r.roleObjects[role.Name]["counters"] = skip.CounterFacts(role)
		}
	}
	r.history = timeline.NewHistory(r.testbed.Clock().Virtual())
	r.clockBegin = r.testbed.Clock().Now()
	r.wantSteps = r.config.Stream.Wants(record.StepEnd)
	r.packets = timeline.NewPackets(r.testbed)
	return nil
}

// showRole shows expressions a role; group and index are those of an instance.
func (r *caseRun) showRole(name, group string, index int, object map[string]any) {
	r.roleObjects[name] = object
	if group == "" {
		r.env[name] = object
		return
	}
	list, _ := r.env[group].([]any)
	if more := index + 1 - len(list); more > 0 {
		list = append(list, make([]any, more)...)
	}
	list[index] = object
	r.env[group], r.owned[name] = list, make(map[string]any)
}

// sharedList are the results under one word, eps[0], eps[1] and on, which all branches share.
type sharedList struct{ items []any }

// ownedName is a word of a role.
type ownedName struct{ role, word string }

// bind gives the result of a step its name, or its place among several; index -1 is for a name.  How long the step took
// is one of its members, unless a field is called so.
func (r *caseRun) bind(role, name string, index int, result map[string]any, took timeline.Instant) {
	if _, taken := result[compile.TookOfResult]; !taken {
		result[compile.TookOfResult] = took.Clock
	}
	r.turns.note(peer.Result{Role: role, Name: name, Index: index, Own: result})
	if s := r.config.Session; s != nil && s.noting {
		s.results = append(s.results, sharedResult{role, name, index, result, took})
	}
	var value, given any = result, result
	if index >= 0 {
		list := r.lists[ownedName{role, name}]
		if list == nil {
			list = &sharedList{}
			r.lists[ownedName{role, name}] = list
		}
		if more := index + 1 - len(list.items); more > 0 {
			list.items = append(list.items, make([]any, more)...)
		}
		list.items[index] = result
		value, given = list.items, list
	}
	if object := r.roleObjects[role]; object != nil {
		object[name] = value
	}
	if own := r.owned[role]; own != nil {
		own[name] = value
	}
	r.env[name] = value
	r.given[name] = given
}

// refresh shows expressions a buffer's new keys.
func (r *caseRun) refresh(buffer *testbed.Buffer) {
	if object := r.roleObjects[buffer.Owner()]; object != nil {
		object[buffer.Name] = buffer.View().Record()
		r.turns.note(peer.Result{
			Role: buffer.Owner(), Name: buffer.Name, Index: -1, Buffer: true, Own: object[buffer.Name],
		})
	}
}

func (r *caseRun) writeStart() {
	start := &record.Start{
		Name: r.testCase.Name, Tags: r.testCase.Tags, Params: make(map[string]string), Seed: r.config.Seed,
		Rerun: r.rerun(), Advance: r.advances.String,
	}
	if soft := r.program.Soft; start.Seed == nil && soft.Seeded && r.config.Providers.First().Name() == testbed.Soft {
		start.Seed = &soft.Seed
	}
	for _, each := range r.testCase.Constants {
		start.Params[each.Name] = each.Text
	}
	for i := range r.testbed.Roles() {
		start.Roles = append(start.Roles, r.place(i))
	}
	if r.config.Observes {
		for _, role := range r.roster.facts {
			start.Roles = append(start.Roles, role.Place)
		}
	}
	r.config.Stream.Write(&record.Record{
		Kind: record.CaseStart, File: r.program.File, Case: r.testCase.ID, Start: start,
	})
}

// place is where a role runs: one of those here, which are in the order of the case.
func (r *caseRun) place(i int) record.RolePlace {
	role := r.testbed.Roles()[i]
	place := record.RolePlace{
		Role: role.Name, Device: role.Device().Name(), Address: role.Address().String(),
		CPUs: testbed.FormatCPUs(role.CPUs()),
	}
	if r.config.Providers.Several() || r.testCase.Roles[i].Provider.Name != "" {
		place.Provider = testbed.ConfigOf(role.Provider()).String()
	}
	if guest := r.testCase.Roles[i].Guest; guest != nil {
		place.Guest = guest.Module
	}
	return place
}

func (r *caseRun) output(role, line string) {
	r.config.Stream.Write(&record.Record{
		Kind: record.Output, File: r.program.File, Case: r.testCase.ID, Line: &record.Line{Role: role, Text: line},
	})
}
