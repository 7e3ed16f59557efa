package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// measureEngine takes the scenario engine: its checker, and what it adds to the operations of a step.
func measureEngine(ctx context.Context, _ paths, all figures) error {
	folder, err := os.MkdirTemp("", "rdmarun-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for _, measure := range []func(context.Context, string, figures) error{
		measureValidate, measureSteps, measureOverhead,
	} {
		if err := measure(ctx, folder, all); err != nil {
			return err
		}
	}
	return nil
}

// written makes a scenario of a head and of lines that a function gives for each number.
func written(folder, name, head string, count int, line func(i int) string) (string, error) {
	var text strings.Builder
	text.WriteString(head)
	for i := range count {
		text.WriteString(line(i))
	}
	path := filepath.Join(folder, name)
	return path, os.WriteFile(path, []byte(text.String()), 0o644)
}

const roleHead = "rdmarun: v1\nroles:\n  client: {buffers: {tx: {size: 64}}}\nsteps:\n"

// measureValidate checks a thousand files of sixty lines, which takes all processors: wall-clock time counts.
func measureValidate(_ context.Context, folder string, all figures) error {
	const files, lines = 1000, 60
	paths := make([]string, files)
	head := strings.Count(roleHead, "\n")
	for n := range paths {
		path, err := written(folder, fmt.Sprintf("valid%d.yaml", n), roleHead, lines-head, func(i int) string {
			return fmt.Sprintf(
				"  - {role: client, decode: {buffer: tx, fields: [{u32: n}]}, as: r%d, expect: {n: $(%d - %d)}}\n", i,
				n, n,
			)
		})
		if err != nil {
			return err
		}
		paths[n] = path
	}
	start := time.Now()
	wallTime := func() time.Duration { return time.Since(start) }
	took, err := repeated(5, wallTime, func() error { return checked(paths...) })
	all["validate-1000"] = took.Seconds()
	return err
}

func checked(paths ...string) error {
	result := scenario.Check(paths, scenario.Params{})
	if count := result.Errors.Len(); count > 0 || len(result.Scenarios) != len(paths) {
		return fmt.Errorf("%d errors in %d files", count, len(paths))
	}
	return nil
}

// repeated is the median time of several runs after one that warms up.
func repeated(times int, clock func() time.Duration, run func() error) (time.Duration, error) {
	var seconds []float64
	for range times + 1 {
		began := clock()
		if err := run(); err != nil {
			return 0, err
		}
		seconds = append(seconds, (clock() - began).Seconds())
	}
	return time.Duration(median(seconds[1:]) * float64(time.Second)), nil
}

// processorTime is what this process has taken of all processors, collecting garbage included: on a machine that others
// use, too, wall-clock time depends on them.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0 // it fails for wrong arguments only, getrusage(2)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// measureSteps checks and runs cases of a hundred and of ten thousand steps, on soft with the virtual clock.
func measureSteps(ctx context.Context, folder string, all figures) error {
	for count, times := range map[int]int{100: 51, 10_000: 5} {
		path, err := written(folder, fmt.Sprintf("steps%d.yaml", count), roleHead, count, func(i int) string {
			return fmt.Sprintf("  - {role: client, fill: {buffer: tx, fields: [{u32: %d}]}}\n", i)
		})
		if err != nil {
			return err
		}
		took, err := repeated(times, processorTime, func() error { return passed(ctx, path) })
		if err != nil {
			return err
		}
		all[fmt.Sprintf("steps-%d", count)] = float64(took) / float64(time.Millisecond)
		all[fmt.Sprintf("step-of-%d", count)] = float64(took) / float64(time.Microsecond) / float64(count)
	}
	return nil
}

// passed runs a file as rdmarun run does, with a provider for each case.
func passed(ctx context.Context, path string) error {
	result := scenario.Check([]string{path}, scenario.Params{})
	if result.Errors.Len() > 0 {
		return fmt.Errorf("%s: %v", path, result.Errors.Sorted()[0])
	}
	totals, err := scenario.Run(ctx, result.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: rdmacore.Soft,
	})
	if err == nil && (totals.Passed != 1 || totals.Failed+totals.Errors > 0) {
		err = fmt.Errorf("%s: %+v", path, totals)
	}
	return err
}

// measureOverhead takes a step of a verb, and the same calls without an engine.
func measureOverhead(ctx context.Context, folder string, all figures) error {
	const calls = 20_000
	times := make(map[int]time.Duration)
	for _, count := range []int{0, calls} {
		path, err := written(folder, fmt.Sprintf("calls%d.yaml", count), roleHead, 1, func(int) string {
			return fmt.Sprintf("  - {role: client, create_ep: {passive: true, port: 7471}, as: ep}\n"+
				"  - {repeat: %d, role: client, get_src_port: {ep: ep}}\n", count)
		})
		if err != nil {
			return err
		}
		if times[count], err = repeated(rounds, processorTime, func() error { return passed(ctx, path) }); err != nil {
			return err
		}
	}
	native, err := nativeCall(calls)
	if err != nil {
		return err
	}
	all["engine-overhead"] = float64(times[calls]-times[0]-native) / float64(time.Microsecond) / calls
	return nil
}

// nativeCall is the time that the calls of measureOverhead take by themselves.
func nativeCall(calls int) (time.Duration, error) {
	provider, err := rdmacore.Open(rdmacore.Soft)
	if err != nil {
		return 0, err
	}
	defer provider.Close()
	channel, err := provider.CreateEventChannel()
	if err != nil {
		return 0, err
	}
	defer channel.Close()
	id, err := channel.CreateID(rdmacore.PortSpaceTCP)
	if err != nil {
		return 0, err
	}
	defer id.Destroy()
	return repeated(rounds, processorTime, func() error {
		for range calls {
			id.SrcPort()
		}
		return nil
	})
}
