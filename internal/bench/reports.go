package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	if _, _, err := spent(ctx, p.rdmarun, "run", "--quiet", "--out", "jsonl="+records, scenario); err != nil {
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
		_, peak, err := spent(ctx, p.rdmarun, "report", records, "--to", "html="+filepath.Join(folder, "long.html"),
			"--to", "junit="+filepath.Join(folder, "long.xml"))
		if err != nil {
			return err
		}
		peaks = append(peaks, peak)
	}
	all["report-peak"] = median(peaks)
	return nil
}
