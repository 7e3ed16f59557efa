package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/meeting"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// mesh gives a call what it needs to measure many pairs, and takes what it finds of them.  Thresholds see each pair as
// a measurement; in the records they are one mesh for each size.
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
			r.config.Stream.Write(&record.Record{
				Kind: record.Meshed, File: r.program.File, Case: r.testCase.ID, Mesh: found,
			})
		}
		for _, found := range pairs {
			for _, each := range found {
				r.locate(step, each)
			}
			r.found = append(r.found, found)
		}
	}
}

// company is the other processes of a mesh.
type company struct {
	run    *caseRun
	remote *remote
}

func (c *company) Process(role string) string { return c.run.roster.where[role] }

func (c *company) Host(role string) string {
	for i := range c.run.roster.facts {
		if facts := &c.run.roster.facts[i]; facts.Name == role {
			return facts.Host
		}
	}
	return ""
}

func (c *company) Counterpart(part, from, to string) verb.Counterpart {
	return c.remote.counterpartIn(c.run, c.key(part)+"/", from, to)
}

func (c *company) key(part string) string { return c.run.stepKey() + "/mesh/" + part }

func (c *company) Tell(part string, value any) error {
	to := c.remote.Mailbox
	if err := to.Tell(c.key(part)+"/"+to.Name(), value); err != nil {
		return &testbed.EnvironmentError{What: "tell the other processes", Err: err}
	}
	return nil
}

func (c *company) Hear(ctx context.Context, process, part string, into any) (err error) {
	var raw json.RawMessage
	var came bool
	r, o := c.run, c.remote
	r.testbed.Outside(func() { raw, came, err = o.HearLast(ctx, process, c.key(part)+"/"+process) })
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
		return fmt.Errorf("what the process of %s says of a mesh: %w", process, err)
	}
	return nil
}
