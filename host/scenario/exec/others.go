package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// others are the processes that play the other roles of a case.  Each process walks all steps of the file.  One of a role
// here runs and its results are told to the others; one of a role elsewhere is waited for, and its results become known
// here.  So what expressions see is the same everywhere, every process takes the same way, and a step begins when the one
// before has ended, whoever had it.
type others struct {
	meeting *meeting.Meeting
	// quiet are the steps that have brought nothing.
	quiet *quiet
	// names are those of the processes that take part.
	names []string
	// prefix begins the keys of this run of the case, endKeys are those of the ends of the other processes.
	prefix  string
	endKeys []meeting.Key
	// where has the processes of the roles that are elsewhere.
	where map[string]string
	// facts are what the processes of roles elsewhere tell of them.
	facts []roleFacts
	// places are where the roles elsewhere run.
	places []record.RolePlace
	// numbers are those of instances that are elsewhere.
	numbers map[string]int
	// faults are the roles in whose processes faults were made, by the faults' names; "" is all.
	faults map[string]string
	// began is set once all have begun, over once `finally` runs: then nobody waits for anybody.
	began, over bool
	// judge is the process that checks the thresholds, "" for this one.
	judge string
	// left ends when a process has ended the case: what it had to say it has said.
	left  context.Context
	leave context.CancelCauseFunc
	mu    sync.Mutex // of ends and told
	// told is how many bytes each other has told that are kept to the end of the case.
	told map[string]int
	// ends are the ends that have been told already.
	ends map[string]ending
}

// beginning is what a process tells before the first step.
type beginning struct {
	Case   string        `json:"case"`
	Status record.Status `json:"status"`
	Reason string        `json:"reason,omitempty"`
	// Known tells that the case is known to fail there.
	Known bool        `json:"known,omitempty"`
	Roles []roleFacts `json:"roles,omitempty"`
	// Baseline is how many measurements of an earlier run this process has, and tells; nil for no such run.
	Baseline *int `json:"baseline,omitempty"`
}

// roleFacts are what expressions see of a role elsewhere.
type roleFacts struct {
	Name   string          `json:"name"`
	Group  string          `json:"group,omitempty"`
	Index  int             `json:"index,omitempty"`
	Object json.RawMessage `json:"object"`
	// First tells that the file has no role before it.
	First bool             `json:"first,omitempty"`
	Place record.RolePlace `json:"place"`
	// Guest tells that a guest plays it.
	Guest bool `json:"guest,omitempty"`
	// GUID is that of its device, Host the name of its host.
	GUID uint64 `json:"guid"`
	Host string `json:"host"`
}

// meetTime bounds the wait for the others at the beginning of a case and at its end, beyond what the case may take.
const meetTime = 30 * time.Second

func newOthers(config *Config) *others {
	o := &others{
		meeting: config.Meeting, names: config.Others, prefix: fmt.Sprintf("%d/", config.Number), where: make(map[string]string), numbers: make(map[string]int),
		faults: make(map[string]string), ends: make(map[string]ending),
	}
	o.quiet = newQuiet(o.meeting, o.prefix)
	for _, name := range o.names {
		o.endKeys = append(o.endKeys, meeting.Key{From: name, Name: o.key("end", name)})
	}
	o.left, o.leave = context.WithCancelCause(context.Background())
	return o
}

// hear waits for a message of a process under one of several keys.  It fails when one of the processes has ended the case.
func (o *others) hear(ctx context.Context, from string, names ...string) (name string, raw json.RawMessage, err error) {
	return o.hearWith(ctx, []string{from}, from, names...)
}

// hearWith is hear where several processes must be there.
func (o *others) hearWith(ctx context.Context, all []string, from string, names ...string) (name string, raw json.RawMessage, err error) {
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(o.left, func() { cancel(context.Cause(o.left)) })()
	keys := make([]meeting.Key, 0, len(names)+len(o.endKeys))
	for _, name := range names {
		keys = append(keys, meeting.Key{From: from, Name: name})
	}
	keys = append(keys, o.endKeys...)
	key, raw, err := o.meeting.AwaitWith(waiting, all, keys...)
	if err == nil && slices.Contains(o.endKeys, key) {
		o.note(key.From, raw)
		err = o.endedBy(key.From)
	}
	return key.Name, raw, err
}

// hearLast waits for a message of a process that may be the last of the case: another that has heard all it waits for may have
// ended the case before this one comes.  came is false when the process itself has ended the case, as each does that waits in vain.
func (o *others) hearLast(ctx context.Context, from, key string) (raw json.RawMessage, came bool, err error) {
	if _, ended := o.endOf(from); ended {
		raw, came = o.meeting.Take(from, key)
		return raw, came, nil
	}
	end := o.key("end", from)
	name, raw, err := o.meeting.Await(ctx, from, key, end)
	if err == nil && name == end {
		o.note(from, raw)
		return nil, false, nil
	}
	return raw, err == nil, err
}

func (o *others) key(what, of string) string { return o.prefix + what + "/" + of }

// gather tells the others that this process is at the beginning of the case, and learns of their roles.  It is false when
// the case does not run, here or there.
func (r *caseRun) gather(ctx context.Context) bool {
	o := r.others
	begin := beginning{Case: r.config.Key, Status: r.result.Status, Reason: r.result.Reason, Known: r.xfail != nil}
	var err error
	if begin.Roles, err = r.ownFacts(); err == nil {
		err = r.tellBaseline(&begin)
	}
	if err == nil {
		err = o.meeting.Tell(o.key("begin", o.meeting.Name()), begin)
	}
	waiting, cancel := context.WithTimeoutCause(ctx, meetTime, errors.New("the other processes are not at the beginning of the case"))
	defer cancel()
	var facts []roleFacts
	for _, name := range o.names {
		var there beginning
		if err == nil {
			err = o.await(waiting, name, o.key("begin", name), &there)
		}
		switch {
		case err != nil || r.result.Status != record.Passed:
		case there.Case != r.config.Key:
			err = fmt.Errorf("the process of %s is at the case %s", name, there.Case)
		case there.Status == record.Skipped:
			r.result.Status, r.result.Reason = record.Skipped, fmt.Sprintf("in the process of %s: %s", name, there.Reason)
		case there.Status != record.Passed:
			err = fmt.Errorf("in the process of %s: %s", name, there.Reason)
		}
		if there.Known {
			r.xfail = r.testCase.XFail
		}
		for _, role := range there.Roles {
			if wrong := r.claimed(&role, name); wrong != nil {
				err = cmp.Or(err, wrong)
				break
			}
			o.where[role.Name] = name
			facts = append(facts, role)
			if role.First {
				o.judge = name
			}
		}
		if err == nil && r.result.Status == record.Passed {
			err = r.takeBaseline(waiting, name, there.Baseline)
		}
	}
	if err == nil && r.result.Status == record.Passed {
		err = r.learn(facts)
	}
	if err == nil && r.result.Status == record.Passed {
		err = r.judgeTogether()
	}
	if err != nil && r.result.Status == record.Passed {
		r.environment(err)
	}
	o.began = r.result.Status == record.Passed
	return o.began
}

// judgeTogether looks at what steps need of roles of several processes, and at the conditions on them.
func (r *caseRun) judgeTogether() error {
	for _, need := range r.testCase.Needs {
		if !divided(r.testCase, need) || slices.ContainsFunc(need.Roles[:], func(role string) bool {
			return r.faulting(role) && (need.Capability != verb.CanFaultPacket || r.onProvider(role)["link"] != rdmacore.LinkLocal)
		}) {
			continue
		}
		r.result.Status = record.Skipped
		r.result.Reason = fmt.Sprintf("it needs %s, and neither %s nor %s is on a provider that has it (soft)", need.Capability, need.Roles[0], need.Roles[1])
		return nil
	}
	if reason := r.crowded(); reason != "" {
		r.result.Status, r.result.Reason = record.Skipped, reason
		return nil
	}
	for _, requirement := range r.testCase.Requires {
		if !isJoint(r.testCase, requirement) {
			continue
		}
		if holds, err := r.holds(requirement, expression.Env{"roles": r.distinct()}); err != nil {
			return fmt.Errorf("requires %s: %w", requirement.Text, err)
		} else if !holds {
			r.result.Status, r.result.Reason = record.Skipped, "it requires "+requirement.Text
			return nil
		}
	}
	if known := r.testCase.XFail; known != nil && known.When.Mentions(r.testCase.Elsewhere...) {
		r.lookWhetherKnown()
	}
	return nil
}

// distinct is what the roles of all processes do not share.
func (r *caseRun) distinct() map[string]any {
	guids, addresses, hosts, count := make(map[uint64]bool), make(map[netip.Addr]bool), make(map[string]bool), 0
	for _, role := range r.testbed.Roles() {
		guids[role.Device().GUID()], addresses[role.Address()], hosts[role.Host] = true, true, true
		count++
	}
	for _, role := range r.others.facts {
		address, _ := r.testbed.AddressOf(role.Name)
		guids[role.GUID], addresses[address], hosts[role.Host] = true, true, true
		count++
	}
	return map[string]any{
		"distinct_hosts": len(hosts) == count, "distinct_devices": len(guids) == count, "distinct_addresses": len(addresses) == count,
	}
}

// crowded is the reason of a case with a counted role, each instance of which wants a host of its own, and two share one.
func (r *caseRun) crowded() string {
	for _, own := range r.testCase.Roles {
		if !own.Spread {
			continue
		}
		role, err := r.testbed.Role(own.Name)
		if err != nil {
			return err.Error()
		}
		for _, other := range r.others.facts {
			if other.Group == own.Group && other.Host == role.Host {
				return fmt.Sprintf("role %s has place: {spread: host}, and %s and %s are both on %s", own.Group, own.Name, other.Name, role.Host)
			}
		}
	}
	return ""
}

// await takes a message of a process.
func (o *others) await(ctx context.Context, from, key string, into any) error {
	_, raw, err := o.meeting.Await(ctx, from, key)
	if err == nil {
		err = o.spend(from, raw)
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	return err
}

// mostTold bounds what the others tell that is kept to the end of the case, and is in its records.
const mostTold = 256 << 20

// spend counts what is kept of a message.  Where there is no room for it, the process is named that has taken most.
func (o *others) spend(from string, raw json.RawMessage) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told == nil {
		o.told = make(map[string]int)
	}
	o.told[from] += len(raw)
	all, loudest := 0, from
	for name, told := range o.told {
		if all += told; told > o.told[loudest] {
			loudest = name
		}
	}
	if all > mostTold {
		return fmt.Errorf("the processes of others tell more than %d MiB in one case, and that of %s %d MiB of it", mostTold>>20, loudest, o.told[loudest]>>20)
	}
	return nil
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
		facts = append(facts, roleFacts{role.Name, role.Group, role.Index, object, i == 0 && r.testCase.Roles[0].Position == 0, r.place(i), r.testCase.Roles[i].Guest != nil, role.Device().GUID(), role.Host})
	}
	return facts, nil
}

// learn shows expressions the roles that are elsewhere.
func (r *caseRun) learn(facts []roleFacts) error {
	for _, role := range facts {
		value, err := meeting.Decode(role.Object)
		object, is := value.(map[string]any)
		if err != nil || !is {
			return fmt.Errorf("what role %s is cannot be read: %w", role.Name, err)
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
		r.others.numbers[role.Name] = role.Index
		role.Place.Host, role.Place.ClockWithin = r.others.where[role.Name], nil
		if clock, known := r.config.Clocks[role.Place.Host]; known {
			role.Place.ClockWithin = &clock.Within
		}
		if module := r.config.Modules[role.Name]; module != "" {
			role.Place.Guest = module
		}
		r.others.places, r.others.facts = append(r.others.places, role.Place), append(r.others.facts, role)
	}
	return nil
}

// claimed tells what is wrong with a role that a process says it plays: it is none of the file's, or another's.
func (r *caseRun) claimed(role *roleFacts, process string) error {
	name, written := role.Name, role.Name
	if role.Group != "" {
		name, written = fmt.Sprintf("%s[%d]", role.Group, role.Index), role.Group
	}
	if role.Index < 0 || role.Index >= maxElsewhere || role.Name != name || !slices.Contains(r.testCase.Elsewhere, written) {
		return fmt.Errorf("the process of %s plays a role %.80q that the case does not have", process, role.Name)
	}
	if other := r.others.where[role.Name]; other != "" {
		return fmt.Errorf("role %s is played by the processes of %s and %s", role.Name, other, process)
	}
	return nil
}

// maxElsewhere bounds the instances of a role elsewhere, as the language does.
const maxElsewhere = 1000

// turn runs a step if its role is here, and waits for its result if not.  One without a role runs everywhere.
func (r *caseRun) turn(ctx context.Context, step *compile.Step, call *compile.Call) error {
	o := r.others
	if r.turns.whole {
		return r.decorated(ctx, step)
	}
	if ofAll(call) {
		return r.together(ctx, step, call)
	}
	role, err := r.playedBy(call)
	if err != nil {
		return r.failed(step, role, call.Verb.Name, err)
	}
	if made := call.Verb.Makes; made != nil && made.Type == verb.FaultName && call.As.Word != "" {
		o.faults[call.As.Word] = role
	}
	process := o.where[role]
	switch {
	case role == "":
		r.common = true
		defer func() { r.common = false }()
		return r.decorated(ctx, step)
	case o.over && (process != "" || r.divides(call)):
		return nil
	case o.over:
		return r.decorated(ctx, step)
	}
	r.turns.next()
	if process != "" {
		_, err = r.elsewhere(ctx, &remoteStep{
			step: step, role: role, action: call.Verb.Name, process: process, leaves: call.Verb.Divides,
			hears: r.measuredKey, heard: func(raw json.RawMessage) error { return r.takeMeasured(step, call, process, raw) }, half: r.half(call, process),
			binds: r.binds(call, role),
		})
		return err
	}
	r.turns.begin()
	err = r.decorated(ctx, step)
	if call.Verb.Divides {
		o.meeting.Forget(r.stepKey() + "/")
	}
	if ctx.Err() == nil {
		if telling := cmp.Or(r.turns.untold, r.tell(r.brought(err))); telling != nil && err == nil {
			return r.untold(step, role, call.Verb.Name, telling)
		}
	}
	return err
}

// faulting tells whether a role, here or elsewhere, is on a provider that makes faults: of a link, its process does.
func (r *caseRun) faulting(role string) bool { return r.onProvider(role)["soft"] == true }

// onProvider are the facts of the provider of a role, here or elsewhere.
func (r *caseRun) onProvider(role string) map[string]any {
	facts, _ := r.roleObjects[role]["provider"].(map[string]any)
	return facts
}

// playedBy is the role whose process runs a step: its own, or of those that its arguments name the first, of a link the
// first that can; "" is every process.
func (r *caseRun) playedBy(call *compile.Call) (string, error) {
	if call.Role != nil {
		name, err := call.Role.Get(r.env)
		if err != nil {
			return "", err
		}
		return name.(string), nil
	}
	for i, argument := range call.Verb.Arguments {
		if i >= len(call.Arguments) || call.Arguments[i] == nil || !verb.NamesRoles(argument.Type) {
			continue
		}
		value, err := call.Arguments[i].Get(r.env)
		if err != nil {
			return "", err
		}
		if name, is := value.(string); is && argument.Type == verb.FaultName {
			return r.others.faults[name], nil
		}
		if roles := verb.RolesNamed(argument.Type, value); len(roles) > 0 {
			return roles[max(slices.IndexFunc(roles, r.faulting), 0)], nil
		}
	}
	return "", nil
}

// binds tells of a call of a role which name its result gets, as this process computes it.
func (r *caseRun) binds(call *compile.Call, role string) func(role, name string, index int) bool {
	if call.Role == nil {
		role = "" // its result is of none
	}
	return func(of, name string, index int) bool {
		if call.As.Word == "" || name != call.As.Word || of != role {
			return false
		}
		_, own, err := call.As.Get(r.env)
		return err == nil && own == index
	}
}
