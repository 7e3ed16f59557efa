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

// mesh gives a call what it needs to measure many pairs, and takes what it finds of them.  Thresholds see each pair as a
// measurement; in the records they are one mesh for each size.
func (r *caseRun) mesh(step *compile.Step, call *verb.Call) {
	call.AtOnce = func(ctx context.Context, count int, f func(ctx context.Context, i int) error) error {
		defer r.ended.Add(1) // not stalled
		return r.atOnce(ctx, count, f)
	}
	if r.others != nil && !r.others.over {
		call.Company = &company{r}
	}
	call.Meshed = func(meshes []*record.Mesh, pairs [][]*record.Measure) {
		for _, found := range meshes {
			as := &record.Measure{What: found.What, How: found.How}
			r.locate(step, as)
			found.What, found.How = as.What, as.How
			r.config.Stream.Write(&record.Record{Kind: record.Meshed, File: r.program.File, Case: r.testCase.ID, Mesh: found})
		}
		for _, found := range pairs {
			for _, each := range found {
				r.locate(step, each)
			}
			r.found = append(r.found, found)
		}
	}
}

// ofAll tells whether a step is one of all processes: a mesh, whose nodes several may play.
func ofAll(call *compile.Call) bool {
	for _, argument := range call.Verb.Arguments {
		if argument.Type == verb.Instances {
			return true
		}
	}
	return false
}

// together runs a step of all processes.  In `finally`, where nobody waits for anybody, it runs where all of it is.
func (r *caseRun) together(ctx context.Context, step *compile.Step, call *compile.Call) error {
	if r.others.over {
		for i, argument := range call.Verb.Arguments {
			if argument.Type != verb.Instances || call.Arguments[i] == nil {
				continue
			}
			nodes, _ := call.Arguments[i].Get(r.env) // its error is that of the step
			if slices.ContainsFunc(verb.RolesNamed(argument.Type, nodes), func(role string) bool { return r.others.where[role] != "" }) {
				return nil
			}
		}
		return r.decorated(ctx, step)
	}
	r.turns.next()
	defer r.others.meeting.Forget(r.stepKey() + "/")
	r.common = true // each process has it, and reports need it once
	defer func() { r.common = false }()
	return r.decorated(ctx, step)
}

// company is the other processes of a mesh.
type company struct{ run *caseRun }

func (c *company) Process(role string) string { return c.run.others.where[role] }

func (c *company) Host(role string) string {
	for i := range c.run.others.facts {
		if facts := &c.run.others.facts[i]; facts.Name == role {
			return facts.Host
		}
	}
	return ""
}

func (c *company) Counterpart(part, from, to string) verb.Counterpart {
	return c.run.counterpartIn(c.key(part)+"/", from, to)
}

func (c *company) key(part string) string { return c.run.stepKey() + "/mesh/" + part }

func (c *company) Tell(part string, value any) error {
	o := c.run.others
	if err := o.meeting.Tell(c.key(part)+"/"+o.meeting.Name(), value); err != nil {
		return &testbed.EnvironmentError{What: "tell the other processes", Err: err}
	}
	return nil
}

func (c *company) Hear(ctx context.Context, process, part string, into any) (err error) {
	var raw json.RawMessage
	var came bool
	r := c.run
	r.outside(func() { raw, came, err = r.others.hearLast(ctx, process, c.key(part)+"/"+process) })
	if err == nil && !came {
		err = r.others.endedBy(process)
	}
	if err == nil {
		err = r.takeRoom(process, raw)
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
