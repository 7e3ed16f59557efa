package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// remote lets several processes play the roles of a case. Each walks all steps of the file. The process of a step's
// role runs it and sends the outcome to the others, which wait for it. So expressions have the same values in every
// process, and all processes take the same branches. A step begins when the one before has ended in any process. The
// lock of the testbed guards it; several goroutines wait for messages at once.
type remote struct {
	*peer.Group
	// player is the process of a role, according to the placement.
	player func(role string) string
	// began is set once all have begun.
	began bool
}

func newRemote(config *Config) *remote {
	group := peer.NewGroup(config.Mailbox, config.Others)
	if config.IsController {
		group.Watched = config.Others // processes that wait for no step miss a lost one, too
	}
	return &remote{Group: group, player: config.Player}
}

// meetTime bounds the wait for the other processes at the beginning and at the end of a case. The time limit of the
// case applies, too.
const meetTime = 30 * time.Second

// step runs a call in the process of its role.  Every process runs a step without a role and a mesh; these have no
// outcome message.
func (o *remote) step(
	ctx context.Context, r *caseRun, step *compile.Step, call *compile.Call,
) (divided bool, err error) {
	if r.position.whole {
		return false, nil
	}
	if ofAll(call) {
		r.position.Next()
		defer o.Mailbox.Forget(r.position.Key() + "/")
		return true, r.everywhere(ctx, step)
	}
	role, err := r.playedBy(call)
	switch {
	case err != nil:
		return true, r.failed(step, role, call.Verb.Name, err)
	case role == "":
		return true, r.everywhere(ctx, step)
	}
	r.position.Next()
	_, err = o.do(ctx, &remoteCall{task{
		remote: o, run: r, step: step, role: role, action: call.Verb.Name, owner: r.roster.where[role],
		leaves: call.Verb.Split,
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
func (c *remoteCall) MessageKey(n int) string        { return c.run.measuredKey(n) }

// binds reports whether the call's result has this name, as this process computes it.
func (c *remoteCall) binds(role, name string, index int) bool {
	as, owner := c.call.As, c.role
	if c.call.Role == nil {
		owner = "" // the result belongs to no role
	}
	if as.Word == "" || name != as.Word || role != owner {
		return false
	}
	_, own, err := as.Get(c.run.env)
	return err == nil && own == index
}

// share sets the connections of a call to the processes with parts of its step.
func (o *remote) share(r *caseRun, running *verb.Call, call *compile.Call) {
	if call.Verb.Split {
		running.PeerConn, running.Meet = o.peerConn(r), o.meet(r, call)
	}
	if call.Verb.Measures {
		running.MeshPeers = &meshPeers{r, o}
	}
}

// decide waits for the decision of the decider, or sends this process's own.  Processes have different clocks, and may
// have different earlier runs.
func (o *remote) decide(
	ctx context.Context, r *caseRun, key string, number int, own func() any,
) (decided json.RawMessage, err error) {
	if err := o.EmptySteps.Flush(); err != nil {
		return nil, err
	}
	key = fmt.Sprint(key, number)
	if r.roster.decider == "" {
		return nil, o.Mailbox.Broadcast(key, own())
	}
	r.testbed.Outside(func() { _, decided, err = o.Await(ctx, r.roster.decider, nil, key) })
	return decided, err
}

// position is the position of a branch, with what its running step adds to the outcome.
type position struct {
	peer.Position
	// whole is set in a loop that is one step of all.
	whole bool
	// sending is set while a step of this process runs and its outcome will be sent.  The fields below belong to that
	// step.
	sending bool
	// sentParts counts its messages with results of measurements, sendErr is the first error of sending one.
	sentParts int
	sendErr   error
	// bound are its results.  ignored are connections: unread completions and events of their peers are ignored.
	bound   []peer.Result
	ignored []testbed.Ends
}

// note adds a result of the running step to its outcome.  A loop that is one step keeps the last result of each name.
func (p *position) note(result peer.Result) {
	if !p.sending {
		return
	}
	if p.whole {
		p.bound = slices.DeleteFunc(p.bound, func(b peer.Result) bool {
			return b.Role == result.Role && b.Name == result.Name
		})
	}
	p.bound = append(p.bound, result)
}

// ignore adds a connection to the outcome.  Its unread completions and events are ignored.
func (p *position) ignore(ends testbed.Ends) {
	if p.sending && ends.Peer.IsValid() && !slices.Contains(p.ignored, ends) {
		p.ignored = append(p.ignored, ends)
	}
}

// carryStreams connects the streams of the guests here with those of guests in other processes, until stop.  stop sends
// the frames that the guests have written before.
func (r *caseRun) carryStreams() (stop func()) {
	own := slices.ContainsFunc(r.testCase.Roles, func(role testbed.RoleConfig) bool { return role.Guest != nil })
	var processes []string
	for _, role := range r.roster.facts {
		if process := r.roster.where[role.Name]; own && role.Guest && !slices.Contains(processes, process) {
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
