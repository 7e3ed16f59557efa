package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
)

const (
	// labSteps are the steps of a case that goes from host to host, batchSteps those of one that stays on a host.
	// They are what is left after the start is subtracted. So there are enough of them to exceed the variation of
	// starts.
	labSteps, batchSteps = 2000, 200_000
	// labAgents are the agents that are started at once.
	labAgents = 64
	// labRecords are at least how many records they send.
	labRecords = 100_000
)

// measureLab takes runs over agents on this machine, with the launcher that starts them here.
func measureLab(ctx context.Context, p paths, all figures) error {
	return inFolder(ctx, p, all, measureLabSteps, measureLabMeasures, measureLabRun, measureJoinedRun)
}

// measureManyAgents takes runs over many agents, and the memory that they cost the controller.
func measureManyAgents(ctx context.Context, p paths, all figures) error {
	return inFolder(ctx, p, all, measureAgents, measureLabRecords)
}

// inFolder runs measurements that write files, in a folder that is there as long.
func inFolder(
	ctx context.Context, p paths, all figures, measures ...func(context.Context, paths, string, figures) error,
) error {
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

// measureLabSteps measures steps of two roles in turns, where each waits for the one before. It also measures steps of
// one role, over two hosts and in one process.
func measureLabSteps(ctx context.Context, p paths, folder string, all figures) error {
	lab, err := labOf(folder, 2)
	if err != nil {
		return err
	}
	const head = "rdmarun: v1\nroles: {one: {buffers: {tx: {size: 64}}}, other: {buffers: {tx: {size: 64}}}}\n" +
		"provider: {soft: {clock: wall}}\nsteps:\n"
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
				return fmt.Sprintf(
					"  - %s\n  - %s\n  - {repeat: %d, do: [%s]}\n", fill("one"), fill("other"), count,
					strings.Join(steps, ", "),
				)
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
		all["lab-steps-"+name], all["here-steps-"+name] = times["lab"]*1000/float64(most),
			times["here"]*1000/float64(most)
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
	const head = "rdmarun: v1\nroles: {many: {count: 64, buffers: {tx: {size: 8}}}}\n" +
		"provider: {soft: {clock: wall}}\ntimeout: 10m\nsteps:\n"
	scenario, err := written(folder, "records.yaml", head, labAgents, func(i int) string {
		return fmt.Sprintf(
			"  - {repeat: %d, do: [{role: \"many[%d]\", fill: {buffer: tx, byte: 1}}]}\n", labRecords/labAgents+1, i,
		)
	})
	if err != nil {
		return err
	}
	_, all["lab-records-peak"], err = spent(
		ctx, p.rdmarun, "run", "-q", "--lab", lab, scenario, "-o", "jsonl="+filepath.Join(folder, "records.jsonl"),
	)
	return err
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

// labMeasures are measurements between two roles, with what a message takes.
var labMeasures = []struct{ figure, step string }{
	{"measure-write", "kind: bandwidth, op: RDMA_WRITE, sizes: [64KiB]"},
	{"measure-send", "kind: latency, op: SEND, sizes: [64]"},
}

// measureLabMeasures takes measurements between two hosts, and between two roles of one process on the same link.
func measureLabMeasures(ctx context.Context, p paths, folder string, all figures) error {
	lab, err := labOf(folder, 2)
	if err != nil {
		return err
	}
	const head = "rdmarun: v1\nroles: {one: {}, other: {}}\nprovider: {soft: {link: udp}}\nsteps:\n"
	scenario, err := written(folder, "measure.yaml", head, len(labMeasures), func(i int) string {
		return fmt.Sprintf("  - {measure: {from: one, to: other, %s, duration: 500ms}}\n", labMeasures[i].step)
	})
	if err != nil {
		return err
	}
	records := filepath.Join(folder, "measure.jsonl")
	found := make(map[string][]float64)
	for range rounds {
		for where, more := range map[string][]string{"lab-": {"--lab", lab}, "here-": nil} {
			if _, _, err := spent(
				ctx, p.rdmarun, append([]string{"run", "-q", "-o", "jsonl=" + records, scenario}, more...)...,
			); err != nil {
				return err
			}
			times, err := messageTimes(records)
			if err == nil && len(times) != len(labMeasures) {
				err = fmt.Errorf("%d measurements, want %d", len(times), len(labMeasures))
			}
			if err != nil {
				return fmt.Errorf("%s: %w", records, err)
			}
			for i, each := range labMeasures {
				found[where+each.figure] = append(found[where+each.figure], times[i])
			}
		}
	}
	for figure, times := range found {
		all[figure] = median(times)
	}
	return nil
}

// messageTimes is how many microseconds a message took in each measurement of a file of records.
func messageTimes(path string) (times []float64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	_, err = jsonl.Read(file, path, func(each *record.Record) error {
		if m := each.Measure; m != nil && m.Messages > 0 {
			times = append(times, float64(m.Took.Nanoseconds())/float64(m.Messages)/1000)
		}
		return nil
	})
	return times, err
}
