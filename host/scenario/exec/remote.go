package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// remote has several processes play the roles of a case.  Each walks all steps of the file.  One of a role here runs
// and its outcome is told to the others; one of a role elsewhere is waited for, and its outcome becomes known here.  So
// what expressions see is the same everywhere, every process takes the same way, and a step begins when the one before
// has ended, whoever had it.  Who has the lock of the testbed uses it; several goroutines wait for messages at once.
type remote struct {
	*peer.Group
	// player is the process that plays a role of the run, as the placement has it.
	player func(role string) string
	// began is set once all have begun.
	began bool
}

func newRemote(config *Config) *remote {
	return &remote{Group: peer.NewGroup(config.Mailbox, config.Others), player: config.Player}
}

// meetTime bounds the wait for the others at the beginning of a case and at its end, beyond what the case may take.
const meetTime = 30 * time.Second

// step is work of the process that has its role.  A step without a role, and a mesh, every process has: nothing is
// told of it.
func (o *remote) step(
	ctx context.Context, r *caseRun, step *compile.Step, call *compile.Call,
) (divided bool, err error) {
	if r.turns.whole {
		return false, nil
	}
	if ofAll(call) {
		r.turns.next()
		defer o.Mailbox.Forget(r.stepKey() + "/")
		return true, r.everywhere(ctx, step)
	}
	role, err := r.playedBy(call)
	switch {
	case err != nil:
		return true, r.failed(step, role, call.Verb.Name, err)
	case role == "":
		return true, r.everywhere(ctx, step)
	}
	r.turns.next()
	_, err = o.do(ctx, &remoteCall{task{
		remote: o, run: r, step: step, role: role, action: call.Verb.Name, owner: r.roster.where[role],
		leaves: call.Verb.Divides,
	}, call})
	return true, err
}

// remoteCall is a call of a role.
type remoteCall struct {
	task
	call *compile.Call
}

func (c *remoteCall) here(ctx context.Context) error { return c.run.decorated(ctx, c.step) }
func (c *remoteCall) adds(*peer.Outcome, error)      {}
func (c *remoteCall) count(int) int                  { return 1 }
func (c *remoteCall) heardUnder(n int) string        { return c.run.measuredKey(n) }

func (c *remoteCall) heard(raw json.RawMessage) error {
	return c.remote.takeMeasured(c.run, c.step, c.call, c.owner, raw)
}

func (c *remoteCall) half() func(context.Context) {
	return c.remote.half(c.run, c.step, c.call, c.owner)
}

// binds tells of the name of the call's result, as this process computes it.
func (c *remoteCall) binds(role, name string, index int) bool {
	as, owner := c.call.As, c.role
	if c.call.Role == nil {
		owner = "" // its result is of none
	}
	if as.Word == "" || name != as.Word || role != owner {
		return false
	}
	_, own, err := as.Get(c.run.env)
	return err == nil && own == index
}

// share gives a call the processes with other parts of its step.
func (o *remote) share(r *caseRun, running *verb.Call, call *compile.Call) {
	if call.Verb.Divides {
		running.Counterpart, running.Meet = o.counterpart(r), o.meet(r, call)
	}
	if call.Verb.Measures {
		running.Company = &company{r, o}
	}
}

// decide hears what the process that judges decides, or tells the others what this one does: each has its own clock,
// and perhaps another earlier run.
func (o *remote) decide(
	ctx context.Context, r *caseRun, key string, number int, own func() any,
) (decided json.RawMessage, err error) {
	if err := o.Quiet.Flush(); err != nil {
		return nil, err
	}
	key = fmt.Sprint(key, number)
	if r.roster.judge == "" {
		return nil, o.Mailbox.Tell(key, own())
	}
	r.testbed.Outside(func() { _, decided, err = o.Hear(ctx, r.roster.judge, nil, key) })
	return decided, err
}

// turns number the steps of a branch, in each process the same.
type turns struct {
	prefix string
	count  int
	// key is the running step's, once somebody has asked for it.
	key string
	// quiet is what is known of steps of other processes that have brought nothing.
	quiet map[string]*peer.QuietOf
	room  []byte // for a key that is only looked for
	// whole is set in a loop that is one step of all.
	whole bool
	// telling is set while a step of this process runs of which the others are told; of it are what follows.
	telling bool
	// told is how much it has told of what it measures, untold why something of that could not be told.
	told   int
	untold error
	// bound are its results, ignored whose peers' leftovers it wants to be ignored.
	bound   []peer.Result
	ignored []testbed.Ends
}

// next begins a step.
func (t *turns) next() {
	t.count++
	t.key = ""
}

// note keeps a result of the running step for the others; of a loop that is one step, the last under each name.
func (t *turns) note(result peer.Result) {
	if !t.telling {
		return
	}
	if t.whole {
		t.bound = slices.DeleteFunc(t.bound, func(b peer.Result) bool {
			return b.Role == result.Role && b.Name == result.Name
		})
	}
	t.bound = append(t.bound, result)
}

// ignore keeps the ends of a connection for the others, whose leftovers are ignored.
func (t *turns) ignore(ends testbed.Ends) {
	if t.telling && ends.Peer.IsValid() && !slices.Contains(t.ignored, ends) {
		t.ignored = append(t.ignored, ends)
	}
}

// appendKey appends the key of the running step.
func (t *turns) appendKey(to []byte) []byte {
	return strconv.AppendInt(append(append(to, "step/"...), t.prefix...), int64(t.count), 10)
}

// stepKey is the key of the running step.
func (r *caseRun) stepKey() string {
	if r.turns.key == "" {
		r.turns.key = string(r.turns.appendKey(nil))
	}
	return r.turns.key
}

// branch are the turns of a branch of a parallel step, of which the step itself is one.
func (t *turns) branch(i int) turns {
	return turns{prefix: fmt.Sprintf("%s%d.%d/", t.prefix, t.count, i)}
}

// quietOf is what the running branch knows of a process.
func (r *caseRun) quietOf(process string) *peer.QuietOf {
	of := r.turns.quiet[process]
	if of == nil {
		if r.turns.quiet == nil {
			r.turns.quiet = make(map[string]*peer.QuietOf)
		}
		of = peer.NewQuietOf(process, r.turns.prefix)
		r.turns.quiet[process] = of
	}
	return of
}

// carryStreams joins the streams of the guests here with those of guests in other processes until stop, which lets what
// these have said before be on its way.
func (r *caseRun) carryStreams() (stop func()) {
	if !slices.ContainsFunc(r.testCase.Roles, func(role testbed.RoleConfig) bool { return role.Guest != nil }) {
		return func() {}
	}
	var processes []string
	for _, role := range r.roster.facts {
		if process := r.roster.where[role.Name]; role.Guest && !slices.Contains(processes, process) {
			processes = append(processes, process)
		}
	}
	if len(processes) == 0 {
		return func() {}
	}
	exchange := r.testbed.Streams()
	exchange.Reach(processes, func(role string) string { return r.roster.where[role] })
	return peer.CarryStreams(r.config.Mailbox, exchange, processes)
}
