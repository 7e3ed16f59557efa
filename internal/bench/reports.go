package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// measureReports makes records of a hundred megabytes by running a scenario, and reports of them.
func measureReports(ctx context.Context, p paths, all figures) error {
	const steps, least = 400_000, 100 << 20
	folder, err := os.MkdirTemp("", "rdmarun-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	scenario, err := written(folder, "long.yaml", roleHead, 1, func(int) string {
		return fmt.Sprintf("  - {repeat: %d, as: i, role: client, fill: {buffer: tx, fields: [{u32: $(i)}]}}\n", steps)
	})
	if err != nil {
		return err
	}
	records := filepath.Join(folder, "long.jsonl")
	if _, err := peakOf(ctx, p.rdmarun, "run", "--quiet", "--out", "jsonl="+records, scenario); err != nil {
		return fmt.Errorf("make records: %w", err)
	}
	info, err := os.Stat(records)
	if err != nil {
		return err
	}
	if info.Size() < least {
		return fmt.Errorf("%d steps are records of %d bytes, and the row speaks of %d", steps, info.Size(), least)
	}
	var peaks []float64
	for range 3 {
		peak, err := peakOf(ctx, p.rdmarun, "report", records, "--to", "html="+filepath.Join(folder, "long.html"),
			"--to", "junit="+filepath.Join(folder, "long.xml"))
		if err != nil {
			return err
		}
		peaks = append(peaks, peak)
	}
	all["report-peak"] = median(peaks)
	return nil
}

// peakOf runs a program and returns its peak memory in MiB.
func peakOf(ctx context.Context, program string, arguments ...string) (float64, error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stderr = os.Stderr
	if err := command.Run(); err != nil {
		return 0, err
	}
	return float64(command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024, nil
}
