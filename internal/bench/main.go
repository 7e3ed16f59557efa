package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"rdmarun/host/bus/bustest"
)

// waitLimit bounds the whole run.
const waitLimit = 5 * time.Minute

// paths are what was built to be measured.
type paths struct{ native, rdmarun, guest, scenario string }

func main() {
	if os.Getenv(serveNATS) != "" {
		bustest.Main()
	}
	var p paths
	flag.StringVar(&p.native, "native", "build/core/plain", "the folder of the programs of the native rows")
	flag.StringVar(&p.rdmarun, "rdmarun", "bin/rdmarun", "the rdmarun binary")
	flag.StringVar(&p.guest, "guest", "guests/hop_c", "the folder of the guest in C")
	flag.StringVar(&p.scenario, "scenario", "scenarios/rping.yaml", "the scenario to run")
	withPeers := flag.Bool("peers", false, "compare with other implementations with installed programs")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), waitLimit)
	defer cancel()
	measured, skipped, table := figures{}, map[string]string{}, rows
	var err error
	if *withPeers {
		table = peerRows
		err = measurePeers(ctx, p, measured, skipped)
	} else {
		err = measure(ctx, p, measured, skipped)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(2)
	}
	if missed := printTable(os.Stdout, table, measured, skipped); missed > 0 {
		fmt.Fprintf(os.Stderr, "bench: %d of %d rows missed their mark\n", missed, len(table))
		os.Exit(1)
	}
}

// measure runs every measurement; what cannot be had is in skipped, with the reason.
func measure(ctx context.Context, p paths, all figures, skipped map[string]string) error {
	sleepers := func(ctx context.Context, p paths, all figures) error { return measureSleepers(ctx, p, all, skipped) }
	starts := func(ctx context.Context, _ paths, all figures) error { return measureStarts(ctx, all, skipped) }
	inPairs := func(ctx context.Context, _ paths, all figures) error { return measureCrowd(ctx, all) }
	meshes := func(ctx context.Context, p paths, all figures) error { return measureMeshes(ctx, p, all, skipped) }
	asGuests := func(ctx context.Context, p paths, all figures) error { return measurePrograms(ctx, p, all, skipped) }
	traces := func(ctx context.Context, p paths, all figures) error { return measureTraces(ctx, p, all, skipped) }
	checks := func(ctx context.Context, p paths, all figures) error { return measureChecks(ctx, p, all, skipped) }
	for _, step := range []struct {
		what string
		run  func(context.Context, paths, figures) error
	}{
		{"the C core", measureNative},
		// Before the guests: a child's peak memory is never less than this process's when it starts.
		{"reports", measureReports},
		{"rdmarun run", measureCommand},
		{"rdmarun exec", sleepers},
		{"many agents", measureManyAgents},
		{"guests", measureGuests},
		{"starts of guests", starts},
		{"a thousand guests", inPairs},
		{"programs as guests", asGuests},
		{"rdmarun trace", traces},
		{"rdmarun check", checks},
		{"the scenario engine", measureEngine},
		// Last: for a while after processes have spun, others are slower.
		{"labs", measureLab},
		{"a mesh of hosts", meshes},
	} {
		fmt.Fprintln(os.Stderr, "measuring", step.what)
		if err := step.run(ctx, p, all); err != nil {
			return fmt.Errorf("measure %s: %w", step.what, err)
		}
	}
	return nil
}
