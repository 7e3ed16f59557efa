package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/skip"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// beginning is what a process tells before the first step.
type beginning struct {
	Case   string        `json:"case"`
	Status record.Status `json:"status"`
	Reason string        `json:"reason,omitempty"`
	// Known tells that the case is known to fail there.
	Known bool        `json:"known,omitempty"`
	Roles []roleFacts `json:"roles,omitempty"`
	// Baseline is in how many parts this process tells what it has of an earlier run; nil for no such run.
	Baseline *int `json:"baseline,omitempty"`
}

// roleFacts are what expressions see of a role elsewhere.
type roleFacts struct {
	Name   string           `json:"name"`
	Group  string           `json:"group,omitempty"`
	Index  int              `json:"index,omitempty"`
	Object json.RawMessage  `json:"object"`
	Place  record.RolePlace `json:"place"`
	// Guest tells that a guest plays it.
	Guest bool `json:"guest,omitempty"`
	// GUID is that of its device, Host the name of its host.
	GUID uint64 `json:"guid"`
	Host string `json:"host"`
}

// begin tells the others that this process is at the beginning of the case, and learns of their roles.  It is false
// when the case does not run, here or there.
func (o *remote) begin(ctx context.Context, r *caseRun) bool {
	if err := o.gather(ctx, r); err != nil && r.result.Status == record.Passed {
		r.environment(err)
	}
	o.began = r.result.Status == record.Passed
	return o.began
}

// gather waits until all are at the beginning of the case.  Where it does not run there, its status says so.
func (o *remote) gather(ctx context.Context, r *caseRun) error {
	if err := o.tellBeginning(r); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(
		ctx, meetTime, errors.New("the other processes are not at the beginning of the case"),
	)
	defer cancel()
	var facts []roleFacts
	for _, name := range o.Names {
		theirs, err := o.hearBeginning(waiting, r, name)
		if err != nil {
			return err
		}
		facts = append(facts, theirs...)
	}
	if r.result.Status != record.Passed {
		return nil
	}
	if err := o.allClaimed(r); err != nil {
		return err
	}
	if err := r.learn(facts); err != nil {
		return err
	}
	return r.judgeTogether()
}

// tellBeginning tells the others that this process is at the beginning of the case.
func (o *remote) tellBeginning(r *caseRun) (err error) {
	begin := beginning{Case: r.config.Key, Status: r.result.Status, Reason: r.result.Reason, Known: r.xfail != nil}
	if begin.Roles, err = r.ownFacts(); err != nil {
		return err
	}
	if r.config.Baseline != nil && len(r.testCase.Thresholds) > 0 { // who judges may not have it
		parts, err := o.TellEarlier(r.config.Baseline)
		if err != nil {
			return err
		}
		begin.Baseline = &parts
	}
	return o.TellOnce("begin", begin)
}

// hearBeginning waits until a process is at the beginning of the case, and takes what it tells of it and of its roles.
func (o *remote) hearBeginning(ctx context.Context, r *caseRun, name string) ([]roleFacts, error) {
	var there beginning
	if err := o.Receive(ctx, name, peer.Key("begin", name), &there); err != nil {
		return nil, err
	}
	there.Reason = verb.Brief(there.Reason)
	printable.Each(&there.Roles, verb.Brief)
	switch {
	case r.result.Status != record.Passed: // which needs no second reason
	case there.Case != r.config.Key:
		return nil, fmt.Errorf("the process of %s is at the case %s", name, verb.Brief(there.Case))
	case there.Status == record.Skipped:
		r.result.Status, r.result.Reason = record.Skipped, fmt.Sprintf("in the process of %s: %s", name, there.Reason)
	case there.Status != record.Passed:
		return nil, fmt.Errorf("in the process of %s: %s", name, there.Reason)
	}
	if there.Known {
		r.xfail = r.testCase.XFail
	}
	for i := range there.Roles {
		role := &there.Roles[i]
		if err := o.claimed(r, role, name); err != nil {
			return nil, err
		}
		r.roster.where[role.Name] = name
	}
	if r.result.Status != record.Passed {
		return nil, nil
	}
	if r.config.led() && name != r.config.Leader {
		return there.Roles, nil // a host's figures of another day are no measure of others
	}
	if there.Baseline != nil && r.config.Baseline == nil {
		earlier, err := o.TakeEarlier(ctx, name, *there.Baseline)
		if err != nil {
			return nil, err
		}
		r.config.Baseline = earlier
	}
	return there.Roles, nil
}

// ownFacts are what expressions see of the roles here; nothing before there is a testbed.
func (r *caseRun) ownFacts() ([]roleFacts, error) {
	if r.testbed == nil {
		return nil, nil
	}
	var facts []roleFacts
	for i, role := range r.testbed.Roles() { // those of the case, in its order
		object, err := meeting.Encode(r.roleObjects[role.Name])
		if err != nil {
			return nil, fmt.Errorf("role %s: %w", role.Name, err)
		}
		facts = append(facts, roleFacts{
			role.Name, role.Group, role.Index, object, r.place(i), r.testCase.Roles[i].Guest != nil,
			role.Device().GUID(), role.Host,
		})
	}
	return facts, nil
}

// claimed tells what is wrong with a role that a process says it plays: it is none of the file's, or another's.  What
// the file and the placement have of the role is theirs, whatever the process says.
func (o *remote) claimed(r *caseRun, role *roleFacts, process string) error {
	i := slices.IndexFunc(r.testCase.Elsewhere, func(known testbed.RoleConfig) bool { return known.Name == role.Name })
	if i < 0 {
		return fmt.Errorf("the process of %s plays a role %.80q that the case does not have", process, role.Name)
	}
	if player := o.player(role.Name); player != process {
		return fmt.Errorf(
			"the process of %s says that it plays role %s, which is that of %s", process, role.Name, player,
		)
	}
	if r.roster.where[role.Name] != "" {
		return fmt.Errorf("the process of %s says twice where role %s is", process, role.Name)
	}
	known := &r.testCase.Elsewhere[i]
	role.Group, role.Index, role.Guest, role.Place.Role = known.Group, known.Index, known.Guest != nil, known.Name
	if r.config.led() {
		role.Host = process
	}
	return nil
}

// allClaimed tells which role nobody says he plays; it finds who judges: the process with the first role of the file.
func (o *remote) allClaimed(r *caseRun) error {
	for i, role := range r.testCase.Elsewhere {
		if r.roster.where[role.Name] == "" {
			return fmt.Errorf("the process of %s does not say where its role %s is", o.player(role.Name), role.Name)
		}
		if i == 0 && (len(r.testCase.Roles) == 0 || r.testCase.Roles[0].Position > 0) {
			r.roster.judge = r.roster.where[role.Name]
		}
	}
	return nil
}

// learn shows expressions the roles that are elsewhere.
func (r *caseRun) learn(facts []roleFacts) error {
	for _, role := range facts {
		value, err := meeting.Decode(role.Object)
		object, is := value.(map[string]any)
		if err != nil || !is {
			return fmt.Errorf("what role %s is cannot be read: %w", role.Name, err)
		}
		if counters, is := object["counters"].(map[string]any); is {
			for name := range counters {
				counters[name] = expression.Elsewhere{} // they grow there
			}
		}
		text, _ := object["address"].(string)
		address, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("the address of role %s: %w", role.Name, err)
		}
		// Of this host the process there knows better: there each role has an address of its own in 127.0.0.0/8.
		if given, known := r.config.Addresses[role.Name]; known && !given.IsLoopback() {
			address, object["address"] = given, given.String()
		}
		r.testbed.Elsewhere(role.Name, address)
		r.showRole(role.Name, role.Group, role.Index, object)
		r.roster.numbers[role.Name] = role.Index
		object["name"], role.Place.Host, role.Place.ClockWithin = role.Name, r.roster.where[role.Name], nil
		if clock, known := r.config.Clocks[role.Place.Host]; known {
			role.Place.ClockWithin = &clock.Within
		}
		if module := r.config.Modules[role.Name]; module != "" || r.config.Observes {
			role.Place.Guest = module
		}
		r.roster.facts = append(r.roster.facts, role)
	}
	return nil
}

// judgeTogether looks at what steps need of roles of several processes, and at the conditions on them.
func (r *caseRun) judgeTogether() error {
	for _, need := range r.testCase.Needs {
		if !skip.Divided(r.testCase, need) || slices.ContainsFunc(need.Roles[:], func(role string) bool {
			return r.faulting(role) &&
				(need.Capability != verb.CanFaultPacket || r.onProvider(role)["link"] != rdmacore.LinkLocal)
		}) {
			continue
		}
		r.result.Status = record.Skipped
		r.result.Reason = fmt.Sprintf(
			"it needs %s, and neither %s nor %s is on a provider that has it (soft)", need.Capability, need.Roles[0],
			need.Roles[1],
		)
		return nil
	}
	if reason := r.crowded(); reason != "" {
		r.result.Status, r.result.Reason = record.Skipped, reason
		return nil
	}
	for _, requirement := range r.testCase.Requires {
		if !skip.IsJoint(r.testCase, requirement) {
			continue
		}
		if holds, err := r.holds(requirement, expression.Env{"roles": testbed.Distinct(r.places())}); err != nil {
			return fmt.Errorf("requires %s: %w", requirement.Text, err)
		} else if !holds {
			r.result.Status, r.result.Reason = record.Skipped, "it requires "+requirement.Text
			return nil
		}
	}
	if known := r.testCase.XFail; known != nil && known.When.Mentions(skip.Elsewhere(r.testCase)...) {
		r.lookWhetherKnown()
	}
	return nil
}

// places are where the roles of all processes run.
func (r *caseRun) places() (places []testbed.Place) {
	for _, role := range r.testbed.Roles() {
		places = append(places, testbed.Place{GUID: role.Device().GUID(), Address: role.Address(), Host: role.Host})
	}
	for _, role := range r.roster.facts {
		address, _ := r.testbed.AddressOf(role.Name)
		places = append(places, testbed.Place{GUID: role.GUID, Address: address, Host: role.Host})
	}
	return places
}

// crowded is the reason of a case with a counted role, each instance of which wants a host of its own, and two share
// one.
func (r *caseRun) crowded() string {
	for _, own := range r.testCase.Roles {
		if !own.Spread {
			continue
		}
		role, err := r.testbed.Role(own.Name)
		if err != nil {
			return err.Error()
		}
		for _, other := range r.roster.facts {
			if other.Group == own.Group && other.Host == role.Host {
				return fmt.Sprintf(
					"role %s has place: {spread: host}, and %s and %s are both on %s", own.Group, own.Name, other.Name,
					role.Host,
				)
			}
		}
	}
	return ""
}
