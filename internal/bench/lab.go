package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	// labSteps are the steps of a case that goes from host to host, batchSteps those of one that stays on a host: so many that
	// they take longer than the starts, of which they are the rest, differ.
	labSteps, batchSteps = 2000, 200_000
	// labAgents are the agents that are started at once.
	labAgents = 64
	// labRecords are at least how many records they send.
	labRecords = 100_000
	// meshHosts measure each with each other, in rounds, each pair for meshTime milliseconds.
	meshHosts, meshTime = 16, 200
)

// measureLab takes runs over agents on this machine, with the launcher that starts them here.
func measureLab(ctx context.Context, p paths, all figures) error {
	return inFolder(ctx, p, all, measureLabSteps, measureAgents, measureLabRecords, measureLabRun, measureJoinedRun)
}

// measureMeshes is of labs, too, but comes last: for a while after so many have spun, two that spin are slower.
func measureMeshes(ctx context.Context, p paths, all figures) error {
	return inFolder(ctx, p, all, measureMesh)
}

// inFolder runs measurements that write files, in a folder that is there as long.
func inFolder(ctx context.Context, p paths, all figures, measures ...func(context.Context, paths, string, figures) error) error {
	folder, err := os.MkdirTemp("", "rdmarun-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for _, measure := range measures {
		if err := measure(ctx, p, folder, all); err != nil {
			return err
		}
	}
	return nil
}

// labOf writes a lab of so many hosts, a1 and on, on which roles are in turns.
func labOf(folder string, hosts int) (string, error) {
	return written(folder, fmt.Sprintf("lab%d.yaml", hosts), "rdmarun: lab/v1\n", 1, func(int) string {
		return fmt.Sprintf("hosts: {\"a[1-%d]\": }\nplace: {\"*\": a}\n", hosts)
	})
}

// measureLabSteps takes steps of two roles in turns, each of which waits for the one before, and steps of one role, over two
// hosts and in one process.
func measureLabSteps(ctx context.Context, p paths, folder string, all figures) error {
	lab, err := labOf(folder, 2)
	if err != nil {
		return err
	}
	const head = "rdmarun: v1\nroles: {one: {buffers: {tx: {size: 64}}}, other: {buffers: {tx: {size: 64}}}}\nprovider: {soft: {clock: wall}}\nsteps:\n"
	fill := func(role string) string { return fmt.Sprintf("{role: %s, fill: {buffer: tx, byte: 1}}", role) }
	for name, roles := range map[string][]string{"turns": {"one", "other"}, "alone": {"other"}} {
		most := map[int]int{1: batchSteps, 2: labSteps}[len(roles)]
		var steps []string
		for _, role := range roles {
			steps = append(steps, fill(role))
		}
		times := make(map[string]float64)
		for _, count := range []int{0, most / len(roles)} {
			scenario, err := written(folder, fmt.Sprintf("%s%d.yaml", name, count), head, 1, func(int) string {
				return fmt.Sprintf("  - %s\n  - %s\n  - {repeat: %d, do: [%s]}\n", fill("one"), fill("other"), count, strings.Join(steps, ", "))
			})
			if err != nil {
				return err
			}
			for where, more := range map[string][]string{"lab": {"--lab", lab}, "here": nil} {
				var walls []float64
				for range rounds {
					wall, _, err := spent(ctx, p.rdmarun, append([]string{"run", "-q", scenario}, more...)...)
					if err != nil {
						return fmt.Errorf("%s: %w", filepath.Base(scenario), err)
					}
					walls = append(walls, wall)
				}
				times[where] += map[bool]float64{true: -1, false: 1}[count == 0] * median(walls)
			}
		}
		all["lab-steps-"+name], all["here-steps-"+name] = times["lab"]*1000/float64(most), times["here"]*1000/float64(most)
	}
	all["lab-step-more"] = all["lab-steps-turns"] - all["here-steps-turns"]
	return nil
}

// measureAgents starts many agents, each with a role.
func measureAgents(ctx context.Context, p paths, folder string, all figures) error {
	lab, err := labOf(folder, labAgents)
	if err != nil {
		return err
	}
	scenario, err := written(folder, "many.yaml", "rdmarun: v1\n", 1, func(int) string {
		return fmt.Sprintf("roles: {many: {count: %d}}\nsteps: [{role: \"many[0]\", log: all are here}]\n", labAgents)
	})
	if err != nil {
		return err
	}
	var walls, peaks []float64
	for range 3 {
		wall, peak, err := spent(ctx, p.rdmarun, "run", "-q", "--lab", lab, scenario)
		if err != nil {
			return err
		}
		walls, peaks = append(walls, wall/1000), append(peaks, peak)
	}
	all["lab-64-agents"], all["lab-64-peak"] = median(walls), median(peaks)
	return nil
}

// measureLabRecords has agents send many records, to be written down.
func measureLabRecords(ctx context.Context, p paths, folder string, all figures) error {
	lab, err := labOf(folder, labAgents)
	if err != nil {
		return err
	}
	const head = "rdmarun: v1\nroles: {many: {count: 64, buffers: {tx: {size: 8}}}}\nprovider: {soft: {clock: wall}}\ntimeout: 10m\nsteps:\n"
	scenario, err := written(folder, "records.yaml", head, labAgents, func(i int) string {
		return fmt.Sprintf("  - {repeat: %d, do: [{role: \"many[%d]\", fill: {buffer: tx, byte: 1}}]}\n", labRecords/labAgents+1, i)
	})
	if err != nil {
		return err
	}
	_, all["lab-records-peak"], err = spent(ctx, p.rdmarun, "run", "-q", "--lab", lab, scenario, "-o", "jsonl="+filepath.Join(folder, "records.jsonl"))
	return err
}

// measureMesh takes all pairs of a mesh, and what the same hosts take without it.
func measureMesh(ctx context.Context, p paths, folder string, all figures) error {
	lab, err := labOf(folder, meshHosts)
	if err != nil {
		return err
	}
	// Nothing is measured again: the rounds are what is asked for.
	steps := []string{"{role: \"node[0]\", log: no mesh}", fmt.Sprintf(
		"{mesh: {role: node, tolerance: 0.0001, measure: {kind: bandwidth, op: RDMA_WRITE, sizes: [64KiB], duration: %dms, warmup: 1ns}}}", meshTime)}
	var took [2]float64
	for i, step := range steps {
		scenario, err := written(folder, fmt.Sprintf("mesh%d.yaml", i), "rdmarun: v1\n", 1, func(int) string {
			return fmt.Sprintf("roles: {node: {count: %d}}\nsteps: [%s]\n", meshHosts, step)
		})
		if err != nil {
			return err
		}
		var walls []float64
		for range 3 {
			wall, _, err := spent(ctx, p.rdmarun, "run", "-q", "--lab", lab, scenario)
			if err != nil {
				return err
			}
			walls = append(walls, wall)
		}
		took[i] = median(walls)
	}
	all["mesh-16"], all["mesh-16-ideal"] = (took[1]-took[0])/1000, (meshHosts-1)*meshTime/1000.
	return nil
}

// measureLabRun takes the scenario that ships over two hosts, from the command to the summary.
func measureLabRun(ctx context.Context, p paths, folder string, all figures) error {
	lab, err := labOf(folder, 2)
	if err != nil {
		return err
	}
	var walls []float64
	for range rounds {
		wall, _, err := spent(ctx, p.rdmarun, "run", "-q", "--lab", lab, p.scenario)
		if err != nil {
			return err
		}
		walls = append(walls, wall)
	}
	all["lab-run-wall"] = median(walls)
	return nil
}
