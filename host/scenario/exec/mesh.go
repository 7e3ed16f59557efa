package exec

import (
	"context"

	"rdmarun/host/record"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/verb"
)

// mesh gives a call what it needs to measure many pairs, and takes what it finds of them.  Thresholds see each pair as a
// measurement; in the records they are one mesh for each size.
func (r *caseRun) mesh(step *compile.Step, call *verb.Call) {
	call.AtOnce = func(ctx context.Context, count int, f func(ctx context.Context, i int) error) error {
		defer r.ended.Add(1) // not stalled
		return r.atOnce(ctx, count, f)
	}
	call.Meshed = func(meshes []*record.Mesh, pairs [][]*record.Measure) {
		for _, found := range meshes {
			as := &record.Measure{Type: found.Type, Operation: found.Operation}
			r.locate(step, as)
			found.Name, found.File, found.Line, found.Column, found.Tags = as.Name, as.File, as.Line, as.Column, as.Tags
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
