package exec

import (
	"context"
	"errors"
	"fmt"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/peer"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// A step on roles of several processes belongs to the process of its first role. Each other process with roles of it
// enters the same step with its part, while it waits for the step's outcome. The outcome also ends the part. For a
// measurement the part is half of the work, for a barrier its guests. Results of a measurement are sent to all other
// processes after each size.

// ownPart runs this process's part of a step that another process owns; nil without such a part.
func (c *remoteCall) ownPart() func(context.Context) {
	o, r, step, call := c.remote, c.run, c.step, c.call
	if !r.divides(call) {
		return nil
	}
	return func(ctx context.Context) {
		if err := r.allowed(nil, call.Verb); err != nil {
			o.Leave(err) // ends the case here and in the other processes
			return
		}
		half := verb.Call{Verb: call.Verb, Testbed: r.testbed, PeerConn: o.peerConn(r)}
		own := o.member(r, c.owner, o.Mailbox.Name(), "member", "owner")
		half.Meet = func(context.Context) error { return join(ctx, own) }
		running := r.progress.Begin("", 0)
		defer r.progress.End(running)
		half.Progress = func(what string, at, of int) {
			r.progress.Part(running, what, at, of)
			r.ended.Add(1) // not stalled
		}
		var err error
		if call.Verb.Measures {
			err = r.watchHalf(step, &half)
		}
		if err == nil {
			half.Arguments, err = r.evaluate(nil, call.Arguments)
		}
		if err == nil {
			err = call.Verb.Run(ctx, &half)
		}
		if err != nil && !call.Verb.Measures { // the halves of a measurement have sent their errors to each other
			_ = own.Send(arrival{Failed: r.peerFailure(err)})
		}
	}
}

// arrival is a message at a barrier: the process is there, or it failed before; from the owner, the barrier is open.
type arrival struct {
	Failed *peer.Failure `json:"failed,omitempty"`
}

// join reports that all steps here are at a barrier, and waits until it is open.
func join(ctx context.Context, with *peer.Conn) error {
	if err := with.Send(arrival{}); err != nil {
		return err
	}
	return with.Receive(ctx, &arrival{})
}

// meet waits until all other processes are at a barrier, of a step that is this process's, and opens it there.
func (o *remote) meet(r *caseRun, call *compile.Call) func(ctx context.Context) error {
	if call.Verb.Measures || !r.divides(call) {
		return nil
	}
	var members []*peer.Conn
	seen := make(map[string]bool)
	for _, role := range r.rolesOf(call) {
		if name := r.roster.where[role]; name != "" && !seen[name] {
			seen[name] = true
			members = append(members, o.member(r, name, name, "owner", "member"))
		}
	}
	return func(ctx context.Context) error {
		for _, each := range members {
			var there arrival
			err := each.Receive(ctx, &there)
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				return &testbed.Failure{
					What: "the barrier stays closed", Expected: "the guests in the process of " + each.Process,
					Got: "they have not come", Late: true,
				}
			case err != nil:
				return err
			case there.Failed != nil:
				return there.Failed.Here()
			}
		}
		for _, each := range members {
			if err := each.Send(arrival{}); err != nil {
				return err
			}
		}
		return nil
	}
}

// member connects the process that owns a step and one with a part of it.  The keys have the name of the second.
func (o *remote) member(r *caseRun, process, name, local, remote string) *peer.Conn {
	return &peer.Conn{
		Group: o.Group, Process: process, Key: r.position.Key() + "/" + name + "/", Local: local, Remote: remote,
	}
}

// peerConn connects to the process with the role of the two that is not here.
func (o *remote) peerConn(r *caseRun) func(from, to string) verb.PeerConn {
	return func(from, to string) verb.PeerConn { return o.peerConnIn(r, r.position.Key()+"/", from, to) }
}

// peerConnIn is peerConn for a step with several such halves: prefix distinguishes them.
func (o *remote) peerConnIn(r *caseRun, prefix, from, to string) verb.PeerConn {
	c := &peer.Conn{Group: o.Group, Local: "from", Remote: "to", Process: r.roster.where[to]}
	if process := r.roster.where[from]; process != "" {
		c.Local, c.Remote, c.Process = "to", "from", process
	}
	c.Key = fmt.Sprintf("%s%s>%s/", prefix, from, to)
	return c
}
