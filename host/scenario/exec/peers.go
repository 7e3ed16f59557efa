package exec

import (
	"context"
	"encoding/json"
	"slices"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/progress"
	"rdmarun/host/scenario/verb"
)

// peers are the processes that play the other roles of a case, as its run needs them.  local is for a case whose roles
// are all here, and for `finally`, where each process is for itself; remote is for several processes.
type peers interface {
	// begin agrees with them that the case runs, and learns of their roles.  It is false where the case does not run.
	begin(ctx context.Context, r *caseRun) bool
	// step runs an action where its role is; divided is false of one that every process runs for itself, which is for
	// the caller to run.  loop runs a loop all of whose steps are of one role.  The error is that of the step, wherever
	// it ran.
	step(ctx context.Context, r *caseRun, step *compile.Step, call *compile.Call) (divided bool, err error)
	loop(ctx context.Context, r *caseRun, step *compile.Step, repeat *compile.Repeat, advance *progress.Step) error
	// share gives a call what it needs of the processes that have parts of its step.
	share(r *caseRun, running *verb.Call, call *compile.Call)
	// decide has the process that judges decide something under a key and a number.  It is nil where that is this one,
	// which calls own.
	decide(ctx context.Context, r *caseRun, key string, number int, own func() any) (decided json.RawMessage, err error)
	// settle waits until they have looked for what they left unread.
	settle(ctx context.Context, r *caseRun)
	// end ends the case together with them.
	end(ctx context.Context, r *caseRun)
}

// roster is where the roles of a case are that other processes play; it is empty where none does.  Who has the lock of
// the testbed uses it.
type roster struct {
	// where has the processes of roles elsewhere.
	where map[string]string
	// facts are what these tell of their roles.
	facts []roleFacts
	// numbers are those of instances that are elsewhere.
	numbers map[string]int
	// faults are the roles in whose processes faults were made, by the faults' names.
	faults map[string]string
	// judge is the process that checks the thresholds, "" for this one.
	judge string
}

func newRoster() *roster {
	return &roster{where: make(map[string]string), numbers: make(map[string]int), faults: make(map[string]string)}
}

// local runs what is here, and waits for nobody.
type local struct {
	// apart is set where other processes have roles of the case: what is theirs is left out.
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
	ctx context.Context, r *caseRun, step *compile.Step, repeat *compile.Repeat, advance *progress.Step,
) error {
	if r.isElsewhere(repeat.Role) {
		return nil
	}
	return r.loop(ctx, step, repeat, advance)
}

func (local) share(*caseRun, *verb.Call, *compile.Call) {}

func (local) decide(_ context.Context, _ *caseRun, _ string, _ int, own func() any) (json.RawMessage, error) {
	own()
	return nil, nil
}

func (local) settle(context.Context, *caseRun) {}
func (local) end(context.Context, *caseRun)    {}

// everywhere runs a step that every process has; reports need it once.
func (r *caseRun) everywhere(ctx context.Context, step *compile.Step) error {
	r.common = true
	defer func() { r.common = false }()
	return r.decorated(ctx, step)
}

// isElsewhere tells whether another process plays a role.
func (r *caseRun) isElsewhere(role string) bool { return r.roster.where[role] != "" }

// playedBy is the role whose process runs a step, where several have roles; "" is every process.
func (r *caseRun) playedBy(call *compile.Call) (role string, err error) {
	role, err = r.roleOf(call)
	if call.Verb.MakesFault() && call.As.Word != "" {
		r.roster.faults[call.As.Word] = role
	}
	return role, err
}

// roleOf is the role of a step: its own, or of those that its arguments name the first, of a link the first that can.
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

// faulting tells whether a role, here or elsewhere, is on a provider that makes faults: of a link, its process does.
func (r *caseRun) faulting(role string) bool { return r.onProvider(role)["soft"] == true }

// onProvider are the facts of the provider of a role, here or elsewhere.
func (r *caseRun) onProvider(role string) map[string]any {
	facts, _ := r.roleObjects[role]["provider"].(map[string]any)
	return facts
}

// divides tells whether some of the roles that a step works on are here, and others are not.
func (r *caseRun) divides(call *compile.Call) bool {
	if !call.Verb.Divides {
		return false
	}
	roles := r.rolesOf(call)
	return slices.ContainsFunc(roles, r.isElsewhere) &&
		slices.ContainsFunc(roles, func(role string) bool { return !r.isElsewhere(role) })
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

// ofAll tells whether a step is one of all processes: a mesh, whose nodes several may play.
func ofAll(call *compile.Call) bool {
	return slices.ContainsFunc(call.Verb.Arguments, func(a verb.Argument) bool { return a.Type == verb.Instances })
}
