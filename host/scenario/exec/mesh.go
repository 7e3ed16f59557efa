package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// mesh sets the functions of a call that measures many pairs.  Thresholds see each pair as a measurement; records have
// one mesh for each size.
func (r *caseRun) mesh(step *compile.Step, call *verb.Call) {
	call.AtOnce = func(ctx context.Context, count int, f func(ctx context.Context, i int) error) error {
		defer r.ended.Add(1) // not stalled
		return r.testbed.AtOnce(ctx, count, f)
	}
	call.Meshed = func(meshes []*record.Mesh, pairs [][]*record.Measure) {
		for _, found := range meshes {
			as := &record.Measure{What: found.What, How: found.How}
			r.locate(step, as)
			found.What, found.How = as.What, as.How
			r.write(record.Record{Kind: record.Meshed, Mesh: found})
		}
		for _, found := range pairs {
			for _, each := range found {
				r.locate(step, each)
			}
			r.found = append(r.found, found)
		}
	}
}

// meshPeers implements verb.MeshPeers.
type meshPeers struct {
	run    *caseRun
	remote *remote
}

func (c *meshPeers) Process(role string) string { return c.run.roster.where[role] }

func (c *meshPeers) Host(role string) string {
	facts := c.run.roster.facts
	if i := slices.IndexFunc(facts, func(of roleFacts) bool { return of.Name == role }); i >= 0 {
		return facts[i].Host
	}
	return ""
}

func (c *meshPeers) PeerConn(part, from, to string) verb.PeerConn {
	return c.remote.peerConnIn(c.run, c.key(part)+"/", from, to)
}

func (c *meshPeers) key(part string) string { return c.run.position.Key() + "/mesh/" + part }

func (c *meshPeers) Broadcast(part string, value any) error {
	to := c.remote.Mailbox
	if err := to.Broadcast(c.key(part)+"/"+to.Name(), value); err != nil {
		return &testbed.EnvironmentError{What: "send to the other processes", Err: err}
	}
	return nil
}

func (c *meshPeers) Receive(ctx context.Context, process, part string, into any) (err error) {
	var raw json.RawMessage
	var came bool
	r, o := c.run, c.remote
	r.testbed.Outside(func() { raw, came, err = o.AwaitLast(ctx, process, c.key(part)+"/"+process) })
	if err == nil && !came {
		err = o.EndedBy(process)
	}
	if err == nil {
		err = o.takeRoom(r, process, raw)
	}
	var gone *meeting.GoneError
	switch {
	case errors.As(err, &gone):
		return &testbed.EnvironmentError{What: "mesh", Err: gone}
	case err != nil:
		return err
	}
	if err = json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("read the mesh of the process of %s: %w", process, err)
	}
	return nil
}
