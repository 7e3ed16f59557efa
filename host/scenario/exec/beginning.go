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
)

// beginning is the message of a process before its first step.
type beginning struct {
	Case   string        `json:"case"`
	Status record.Status `json:"status"`
	Reason string        `json:"reason,omitempty"`
	// Known means that the case is known to fail there.
	Known bool        `json:"known,omitempty"`
	Roles []roleFacts `json:"roles,omitempty"`
	// Baseline is the number of messages with the process's results of an earlier run; nil without such a run.
	Baseline *int `json:"baseline,omitempty"`
}

// roleFacts are the values that expressions see of a role in another process.
type roleFacts struct {
	Name   string           `json:"name"`
	Group  string           `json:"group,omitempty"`
	Index  int              `json:"index,omitempty"`
	Object json.RawMessage  `json:"object"`
	Place  record.RolePlace `json:"place"`
	// Guest means that a guest plays it.
	Guest bool `json:"guest,omitempty"`
	// GUID is that of its device, Host the name of its host.
	GUID uint64 `json:"guid"`
	Host string `json:"host"`
}

// begin agrees with the other processes that the case runs, and learns their roles.  It is false when the case does not
// run, here or in another process.
func (o *remote) begin(ctx context.Context, r *caseRun) bool {
	if err := o.gather(ctx, r); err != nil && r.result.Status == record.Passed {
		r.environment(err)
	}
	o.began = r.result.Status == record.Passed
	return o.began
}

// gather waits until all processes are at the beginning of the case.  If the case does not run in one of them, the
// result gets its status.
func (o *remote) gather(ctx context.Context, r *caseRun) error {
	if err := o.sendBeginning(r); err != nil {
		return err
	}
	waiting, cancel := context.WithTimeoutCause(
		ctx, meetTime, errors.New("the other processes are not at the beginning of the case"),
	)
	defer cancel()
	var facts []roleFacts
	for _, name := range o.Names {
		theirs, err := o.receiveBeginning(waiting, r, name)
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
	return r.checkTogether()
}

// sendBeginning reports to the others that this process is at the beginning of the case.
func (o *remote) sendBeginning(r *caseRun) (err error) {
	begin := beginning{Case: r.config.Key, Status: r.result.Status, Reason: r.result.Reason, Known: r.xfail != nil}
	if begin.Roles, err = r.ownFacts(); err != nil {
		return err
	}
	if r.config.Baseline != nil && len(r.testCase.Thresholds) > 0 { // the decider may not have it
		parts, err := o.SendEarlier(r.config.Baseline)
		if err != nil {
			return err
		}
		begin.Baseline = &parts
	}
	return o.SendOnce("begin", begin)
}

// receiveBeginning waits until a process is at the beginning of the case, and takes the facts of its roles.
func (o *remote) receiveBeginning(ctx context.Context, r *caseRun, name string) ([]roleFacts, error) {
	var there beginning
	if err := o.Receive(ctx, name, peer.Key("begin", name), &there); err != nil {
		return nil, err
	}
	there.Reason = verb.Brief(there.Reason)
	printable.Each(&there.Roles, verb.Brief)
	switch {
	case r.result.Status != record.Passed: // the status has a reason already
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
	if r.config.hasController() && name != r.config.Controller {
		return there.Roles, nil // results of another day on that host do not compare with those of others
	}
	if there.Baseline != nil && r.config.Baseline == nil {
		earlier, err := o.ReceiveEarlier(ctx, name, *there.Baseline)
		if err != nil {
			return nil, err
		}
		r.config.Baseline = earlier
	}
	return there.Roles, nil
}

// ownFacts are the values that expressions see of the roles here; nothing before there is a testbed.
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

// claimed returns an error for a role that a process claims to play, if it is not in the file or is another's.  The
// role's facts come from the file and the placement, not from that process.
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
		return fmt.Errorf("the process of %s has sent the place of role %s twice", process, role.Name)
	}
	known := &r.testCase.Elsewhere[i]
	role.Group, role.Index, role.Guest, role.Place.Role = known.Group, known.Index, known.Guest != nil, known.Name
	if r.config.hasController() {
		role.Host = process
	}
	return nil
}

// allClaimed returns an error for a role that no process claims.  It sets the decider: the process of the file's first
// role.
func (o *remote) allClaimed(r *caseRun) error {
	for i, role := range r.testCase.Elsewhere {
		if r.roster.where[role.Name] == "" {
			return fmt.Errorf("the process of %s has not sent the place of its role %s", o.player(role.Name), role.Name)
		}
		if i == 0 && (len(r.testCase.Roles) == 0 || r.testCase.Roles[0].Position > 0) {
			r.roster.decider = r.roster.where[role.Name]
		}
	}
	return nil
}

// learn makes the roles of other processes visible to expressions.
func (r *caseRun) learn(facts []roleFacts) error {
	for _, role := range facts {
		value, err := meeting.Decode(role.Object)
		object, is := value.(map[string]any)
		if err != nil || !is {
			return fmt.Errorf("what role %s is cannot be read: %w", role.Name, err)
		}
		if counters, is := object["counters"].(map[string]any); is {
			for name := range counters {
				counters[name] = expression.Elsewhere{} // the counters belong to that process
			}
		}
		text, _ := object["address"].(string)
		address, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("the address of role %s: %w", role.Name, err)
		}
		// The process there knows its loopback addresses better: each of its roles has its own address in 127.0.0.0/8.
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
		if module := r.config.Modules[role.Name]; module != "" || r.config.IsController {
			role.Place.Guest = module
		}
		r.roster.facts = append(r.roster.facts, role)
	}
	return nil
}

// checkTogether skips the case if the processes together do not meet its requirements.  A condition of xfail may be on
// their roles, too.
func (r *caseRun) checkTogether() error {
	joint := skip.Joint{Provider: r.onProvider, Holds: r.holds}
	for _, role := range r.testbed.Roles() {
		joint.Here = append(joint.Here, skip.Role{Name: role.Name, Group: role.Group, Place: testbed.Place{
			GUID: role.Device().GUID(), Address: role.Address(), Host: role.Host,
		}})
	}
	for _, role := range r.roster.facts {
		address, _ := r.testbed.AddressOf(role.Name)
		joint.Elsewhere = append(joint.Elsewhere, skip.Role{Name: role.Name, Group: role.Group, Place: testbed.Place{
			GUID: role.GUID, Address: address, Host: role.Host,
		}})
	}
	reason, err := joint.Reason(r.testCase)
	if err != nil {
		return err
	}
	if reason != "" {
		r.result.Status, r.result.Reason = record.Skipped, reason
		return nil
	}
	if known := r.testCase.XFail; known != nil && known.When.Mentions(skip.Elsewhere(r.testCase)...) {
		r.lookWhetherKnown()
	}
	return nil
}
