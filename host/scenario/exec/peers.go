package exec

import (
	"context"
	"encoding/json"
	"slices"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/progress"
	"rdmarun/host/scenario/verb"
)

// peers are the processes that play the other roles of a case, as its run needs them.  local is for a case with all its
// roles here, and for `finally`, where each process works alone; remote is for several processes.
type peers interface {
	// begin agrees with them that the case runs, and learns their roles.  It is false when the case does not run.
	begin(ctx context.Context, r *caseRun) bool
	// step runs an action in the process of its role.  divided is false for an action that every process runs, which is
	// left to the caller.  loop runs a loop with steps of one role.  The error is that of the step, in any process.
	step(ctx context.Context, r *caseRun, step *compile.Step, call *compile.Call) (divided bool, err error)
	loop(ctx context.Context, r *caseRun, step *compile.Step, repeat *compile.Repeat, running *progress.Step) error
	// share sets the connections of a call to processes with parts of its step.
	share(r *caseRun, running *verb.Call, call *compile.Call)
	// decide returns the decision of the decider under a key and a number.  It is nil in the decider itself, which
	// calls own.
	decide(ctx context.Context, r *caseRun, key string, number int, own func() any) (decided json.RawMessage, err error)
	// awaitChecks waits until they have checked for unread completions and events.
	awaitChecks(ctx context.Context, r *caseRun)
	// end ends the case together with them.
	end(ctx context.Context, r *caseRun)
}

// roster has the roles of other processes; it is empty without any.  The lock of the testbed guards it.
type roster struct {
	// where has the process of each role of another process.
	where map[string]string
	// facts are the values of these roles that expressions see.
	facts []roleFacts
	// numbers are the numbers of instances in other processes.
	numbers map[string]int
	// faults has a role of the process in which each fault was made, by the faults' names.
	faults map[string]string
	// decider is the process that checks thresholds and decides about rounds; "" for this one.
	decider string
}

func newRoster() *roster {
	return &roster{where: make(map[string]string), numbers: make(map[string]int), faults: make(map[string]string)}
}

// local runs the steps of this process, without waiting for others.
type local struct {
	// apart is set when other processes have roles of the case: their steps are left out.
	apart bool
}

func (local) begin(context.Context, *caseRun) bool { return true }

func (l local) step(ctx context.Context, r *caseRun, step *compile.Step, call *compile.Call) (divided bool, err error) {
	if !l.apart {
		return false, nil
	}
	role, err := r.playedBy(call)
	switch {
	case err != nil:
		return true, r.failed(step, role, call.Verb.Name, err)
	case ofAll(call) && slices.ContainsFunc(r.rolesOf(call), r.isElsewhere), r.isElsewhere(role), r.divides(call):
		return true, nil
	case role == "":
		return true, r.everywhere(ctx, step)
	}
	return false, nil
}

func (local) loop(
	ctx context.Context, r *caseRun, step *compile.Step, repeat *compile.Repeat, running *progress.Step,
) error {
	if r.isElsewhere(repeat.Role) {
		return nil
	}
	return r.loop(ctx, step, repeat, running)
}

func (local) share(*caseRun, *verb.Call, *compile.Call) {}

func (local) decide(_ context.Context, _ *caseRun, _ string, _ int, own func() any) (json.RawMessage, error) {
	own()
	return nil, nil
}

func (local) awaitChecks(context.Context, *caseRun) {}
func (local) end(context.Context, *caseRun)         {}

// everywhere runs a step that every process runs; it is in the reports once.
func (r *caseRun) everywhere(ctx context.Context, step *compile.Step) error {
	r.common = true
	defer func() { r.common = false }()
	return r.decorated(ctx, step)
}

// isElsewhere reports whether another process plays a role.
func (r *caseRun) isElsewhere(role string) bool { return r.roster.where[role] != "" }

// playedBy is the role of the process that runs a step; "" when every process does.
func (r *caseRun) playedBy(call *compile.Call) (role string, err error) {
	role, err = r.roleOf(call)
	if call.Verb.MakesFault() && call.As.Word != "" {
		r.roster.faults[call.As.Word] = role
	}
	return role, err
}

// roleOf is the role of a step: its own, or the first that its arguments name. For a fault on a link, it is the first
// that can make it.
func (r *caseRun) roleOf(call *compile.Call) (string, error) {
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
			return r.roster.faults[name], nil
		}
		if roles := verb.RolesNamed(argument.Type, value); len(roles) > 0 {
			return roles[max(slices.IndexFunc(roles, r.faulting), 0)], nil
		}
	}
	return "", nil
}

// faulting reports whether the provider of a role, here or in another process, can make faults.
func (r *caseRun) faulting(role string) bool { return r.onProvider(role)["soft"] == true }

// onProvider are the facts of a role's provider, here or in another process.
func (r *caseRun) onProvider(role string) map[string]any {
	facts, _ := r.roleObjects[role]["provider"].(map[string]any)
	return facts
}

// divides reports whether a step works on roles here and on roles of other processes.
func (r *caseRun) divides(call *compile.Call) bool {
	if !call.Verb.Split {
		return false
	}
	roles := r.rolesOf(call)
	return slices.ContainsFunc(roles, r.isElsewhere) &&
		slices.ContainsFunc(roles, func(role string) bool { return !r.isElsewhere(role) })
}

// rolesOf are the roles that the arguments of a call name.
func (r *caseRun) rolesOf(call *compile.Call) (roles []string) {
	if call.Verb.OfProgram {
		role, _ := call.Role.Get(r.env) // the step reports its error
		name, _ := role.(string)
		return []string{name}
	}
	for i, argument := range call.Verb.Arguments {
		if i < len(call.Arguments) && call.Arguments[i] != nil && verb.NamesRoles(argument.Type) {
			value, _ := call.Arguments[i].Get(r.env) // the step reports its error
			roles = append(roles, verb.RolesNamed(argument.Type, value)...)
		}
	}
	return roles
}

// ofAll reports whether all processes run a step together: a mesh, with nodes that several may play.
func ofAll(call *compile.Call) bool {
	return slices.ContainsFunc(call.Verb.Arguments, func(a verb.Argument) bool { return a.Type == verb.Instances })
}
