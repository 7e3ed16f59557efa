package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

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
	if call.Verb.MakesFault() && call.As.Word != "" {
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
		return r.turnOf(ctx, step, call, role, process)
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

// turnOf waits for a step of another process.
func (r *caseRun) turnOf(ctx context.Context, step *compile.Step, call *compile.Call, role, process string) error {
	if !call.Verb.Divides && r.others.quiet.flush() == nil && r.wasQuiet(process) {
		r.enter(role, r.others.numbers[role])
		r.steps++
		r.ended.Add(1)
		return nil
	}
	_, err := r.elsewhere(ctx, &remoteStep{
		step: step, role: role, action: call.Verb.Name, process: process, leaves: call.Verb.Divides,
		hears: r.measuredKey, heard: func(raw json.RawMessage) error { return r.takeMeasured(step, call, process, raw) }, half: r.half(step, call, process),
		binds: r.binds(call, role),
	})
	return err
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

// faulting tells whether a role, here or elsewhere, is on a provider that makes faults: of a link, its process does.
func (r *caseRun) faulting(role string) bool { return r.onProvider(role)["soft"] == true }

// onProvider are the facts of the provider of a role, here or elsewhere.
func (r *caseRun) onProvider(role string) map[string]any {
	facts, _ := r.roleObjects[role]["provider"].(map[string]any)
	return facts
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

// turns number the steps of a branch, in each process the same.
type turns struct {
	prefix string
	count  int
	// key is the running step's, once somebody has asked for it; told is how much it has told of what it measures.
	key  string
	told int
	// quiet is what is known of steps of other processes that have brought nothing.
	quiet map[string]*quietOf
	room  []byte // for a key that is only looked for
	// untold is why something of it could not be told.
	untold error
	// bound are the results of the running step, ignored whose peers' leftovers it wants to be ignored.
	bound   []boundResult
	ignored []testbed.Ends
	// whole is set in a loop that is one step of all.
	whole bool
}

// begin forgets what an earlier step of this process has brought.
func (t *turns) begin() { t.bound, t.ignored, t.told, t.untold = nil, nil, 0, nil }

// next begins a step.
func (t *turns) next() {
	t.count++
	t.key = ""
}

// note keeps a result of the running step for the others; of a loop that is one step, the last under each name.
func (t *turns) note(result boundResult) {
	if t.whole {
		t.bound = slices.DeleteFunc(t.bound, func(b boundResult) bool { return b.Role == result.Role && b.Name == result.Name })
	}
	t.bound = append(t.bound, result)
}

// appendKey appends the key of the running step.
func (r *caseRun) appendKey(to []byte) []byte {
	to = append(append(append(to, r.others.prefix...), "step/"...), r.turns.prefix...)
	return strconv.AppendInt(to, int64(r.turns.count), 10)
}

// stepKey is the key of the running step.
func (r *caseRun) stepKey() string {
	if r.turns.key == "" {
		r.turns.key = string(r.appendKey(nil))
	}
	return r.turns.key
}

// branch are the turns of a branch of a parallel step, of which the step itself is one.
func (t *turns) branch(i int) turns {
	return turns{prefix: fmt.Sprintf("%s%d.%d/", t.prefix, t.count, i)}
}
