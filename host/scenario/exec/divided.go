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

// A step that works on roles of several processes is a step of the one that has its first role, as every step is of one
// process.  Each other process with roles of it walks into the same step with its part, while it waits for the step's
// outcome, which ends the part as well: of a measurement half of the work, of a barrier its guests.  What is measured
// all others are told, a size at a time.

// half runs the part of a step that another process runs; nil where there is none here.
func (o *remote) half(r *caseRun, step *compile.Step, call *compile.Call, owner string) func(context.Context) {
	if !r.divides(call) {
		return nil
	}
	return func(ctx context.Context) {
		if err := r.allowed(nil, call.Verb); err != nil {
			o.Leave(err) // the case ends here, and so elsewhere
			return
		}
		half := verb.Call{Verb: call.Verb, Testbed: r.testbed, Counterpart: o.counterpart(r)}
		own := o.member(r, owner, o.Mailbox.Name(), "member", "owner")
		half.Meet = func(context.Context) error { return join(ctx, own) }
		advance := r.advances.Begin("", 0)
		defer r.advances.End(advance)
		half.Advance = func(what string, at, of int) {
			r.advances.Part(advance, what, at, of)
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
		if err != nil && !call.Verb.Measures { // whose halves have told each other
			_ = own.Say(met{Failed: r.failureTold(err)})
		}
	}
}

// met is what a process says at a barrier: it is there, or never will be; or that it is open.
type met struct {
	Failed *peer.Failure `json:"failed,omitempty"`
}

// join says that everybody here is at a barrier, and waits until it is open.
func join(ctx context.Context, with *peer.Counterpart) error {
	if err := with.Say(met{}); err != nil {
		return err
	}
	return with.Hear(ctx, &met{})
}

// meet waits until everybody elsewhere is at a barrier, of a step that is this process's, and opens it there.
func (o *remote) meet(r *caseRun, call *compile.Call) func(ctx context.Context) error {
	if call.Verb.Measures || !r.divides(call) {
		return nil
	}
	var members []*peer.Counterpart
	seen := make(map[string]bool)
	for _, role := range r.rolesOf(call) {
		if name := r.roster.where[role]; name != "" && !seen[name] {
			seen[name] = true
			members = append(members, o.member(r, name, name, "owner", "member"))
		}
	}
	return func(ctx context.Context) error {
		for _, each := range members {
			var there met
			err := each.Hear(ctx, &there)
			switch {
			case errors.Is(err, context.DeadlineExceeded):
				return &testbed.Failure{
					What: "the barrier stays closed", Expected: "the guests in the process of " + each.Process,
					Got: "they have not come",
				}
			case err != nil:
				return err
			case there.Failed != nil:
				return there.Failed.Here()
			}
		}
		for _, each := range members {
			if err := each.Say(met{}); err != nil {
				return err
			}
		}
		return nil
	}
}

// member is the way between the process that has a step and another one with a part of it, whose name the keys have.
func (o *remote) member(r *caseRun, process, name, said, heard string) *peer.Counterpart {
	return &peer.Counterpart{
		Group: o.Group, Process: process, Key: r.stepKey() + "/" + name + "/", Said: said, Heard: heard,
	}
}

// counterpart is the process with the role of the two that is not here.
func (o *remote) counterpart(r *caseRun) func(from, to string) verb.Counterpart {
	return func(from, to string) verb.Counterpart { return o.counterpartIn(r, r.stepKey()+"/", from, to) }
}

// counterpartIn is counterpart where a step has several such halves: prefix tells them apart.
func (o *remote) counterpartIn(r *caseRun, prefix, from, to string) verb.Counterpart {
	c := &peer.Counterpart{Group: o.Group, Said: "from", Heard: "to", Process: r.roster.where[to]}
	if process := r.roster.where[from]; process != "" {
		c.Said, c.Heard, c.Process = "to", "from", process
	}
	c.Key = fmt.Sprintf("%s%s>%s/", prefix, from, to)
	return c
}
