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
	"rdmarun/rdmacore"
)

// caseRun is the state of a running case.
type caseRun struct {
	config   Config
	scenario *compile.Scenario
	testCase *compile.Case
	testbed  *testbed.Testbed
	env      expression.Env
	begin    time.Time
	// clockBegin is the start of the case on the provider's clock.
	clockBegin time.Duration
	result     record.Result
	// causes is the number of guests and programs that had failed before; theirs are the first failures of the result.
	causes  int
	history *timeline.History // of all branches
	loops   timeline.Loops
	// found are the measurements, each of one size and of each end that has measured.
	found [][]*record.Measure
	// stillRunning are the guests and programs of this process that ran when a step took too long, with their places.
	stillRunning []string
	// tooFew is set when thresholds failed because the case has ended with a measurement of too few messages.
	tooFew bool
	// begun are the fixtures that have begun their setup, in order.
	begun []*compile.Fixture
	// kept is set when the shared testbed is left to the next case.
	kept bool
	// path has the names of the steps around the current one.
	path []string
	// uses are the steps that use the fragments around the current step, the outermost first.
	uses []*compile.Step
	// tags are the tags of the current step and the steps around it.  A map is not changed after it is stored here.
	tags map[string]string
	// known is the reason why the current step, or one around it, is known to fail; "" if it is not.
	known string
	// xfail is the xfail of the case, if it applies here.
	xfail *compile.XFail
	// steps counts actions; ended does, too, for the goroutine that watches for stalls.
	steps int
	// tallies are the tallies of all branches, until the case ends.
	tallies *record.Tallies
	ended   *atomic.Int64
	// away counts the loops for which this process waits.  Their own processes watch them for stalls.
	away *atomic.Int64
	// progress are the progress of the running steps.
	progress *progress.Steps
	// given are the named results of this branch; lists are the results under one word, of all branches.
	given map[string]any
	lists map[ownedName]*sharedList
	// wantSteps is set when some output wants a record of each step.
	wantSteps bool
	// packets finds the packets of steps, for all branches; nil without capture.
	packets *timeline.Packets
	// running is the call of the verb that runs, one at a time.  The next step overwrites it, so it must not be kept.
	running verb.Call
	// owned has the results of each instance of a counted role, which only its own steps see.
	owned map[string]map[string]any
	// roleObjects are the values of roles in expressions.
	roleObjects map[string]map[string]any
	// peers are the processes of the other roles; roster has these roles.
	peers    peers
	roster   *roster
	position position
	// common is set while a step runs that every process runs.
	common bool
}

// environmentNames sets the variables that expressions have from the start.
func (r *caseRun) environmentNames() error {
	r.env = make(expression.Env)
	if r.scenario.Guests || r.scenario.Programs { // which have values of the file
		r.env[compile.Hidden] = make(map[string]any)
	}
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

// showRole adds a role to the variables; group and index are those of an instance.
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

// sharedList has the results under one word, eps[0], eps[1] and so on, which all branches share.
type sharedList struct{ items []any }

// ownedName is a word of a role.
type ownedName struct{ role, word string }

// bind gives the result of a step its name, or its index in a list; index -1 is for a name.  The time of the step is
// one of its members, unless a field has that name.
func (r *caseRun) bind(role, name string, index int, result map[string]any, took timeline.Instant) {
	if _, taken := result[compile.TookOfResult]; !taken {
		result[compile.TookOfResult] = took.Clock
	}
	r.position.note(peer.Result{Role: role, Name: name, Index: index, Own: result})
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

// refresh updates the keys of a buffer in the variables.
func (r *caseRun) refresh(buffer *testbed.Buffer) {
	if object := r.roleObjects[buffer.Owner()]; object != nil {
		object[buffer.Name] = buffer.View().Record()
		r.position.note(peer.Result{
			Role: buffer.Owner(), Name: buffer.Name, Index: -1, Buffer: true, Own: object[buffer.Name],
		})
	}
}

func (r *caseRun) writeStart() {
	start := &record.Start{
		Name: r.testCase.Name, Tags: r.testCase.Tags, Params: make(map[string]string), Seed: r.config.Seed,
		Rerun: r.config.Rerun, Progress: r.progress.String,
	}
	if soft := r.scenario.Soft; start.Seed == nil && soft.Seeded && r.config.Providers.First().Name() == rdmacore.Soft {
		start.Seed = &soft.Seed
	}
	for _, each := range r.testCase.Constants {
		start.Params[each.Name] = each.Text
	}
	for i := range r.testbed.Roles() {
		start.Roles = append(start.Roles, r.place(i))
	}
	if r.config.IsController {
		for _, role := range r.roster.facts {
			start.Roles = append(start.Roles, role.Place)
		}
	}
	r.write(record.Record{Kind: record.CaseStart, Start: start})
}

// place is the place of a role of this process, by its index in the case.
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

// output writes a line of a role, of that time; zero: of now.
func (r *caseRun) output(role, line string, at time.Time) {
	written := &record.Line{Role: role, Text: line}
	if !at.IsZero() {
		written.At = max(1, at.Sub(r.begin))
	}
	r.write(record.Record{Kind: record.Output, Line: written})
}

// write writes a record of the case.
func (r *caseRun) write(each record.Record) {
	each.File, each.Case = r.scenario.File, r.testCase.ID
	r.config.Stream.Write(&each)
}
