package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// programs are those of rdmacore/bench.
var programs = []string{"bench_latency", "bench_rate", "bench_copy", "bench_connect", "bench_sim", "bench_udp", "bench_idle"}

// measureNative takes the rows of the C programs: lines of name, value, unit.
func measureNative(ctx context.Context, p paths, all figures) error {
	for _, program := range programs {
		if err := takeRows(ctx, filepath.Join(p.native, program), all); err != nil {
			return fmt.Errorf("%s: %w", program, err)
		}
	}
	return nil
}

func takeRows(ctx context.Context, program string, all figures) error {
	output, err := exec.CommandContext(ctx, program).Output()
	if err != nil {
		return err
	}
	for lines := bufio.NewScanner(bytes.NewReader(output)); lines.Scan(); {
		var name, unit string
		var value float64
		if _, err := fmt.Sscan(lines.Text(), &name, &value, &unit); err != nil {
			return fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		all[name] = value
	}
	return nil
}

// runs is how often the command is run after one that warms its caches.
const runs = 11

// measureCommand takes wall time and peak memory of the whole process.
func measureCommand(ctx context.Context, p paths, all figures) error {
	var walls, peaks []float64
	for range runs + 1 {
		wall, peak, err := spent(ctx, p.rdmarun, "run", p.scenario)
		if err != nil {
			return err
		}
		walls, peaks = append(walls, wall), append(peaks, peak)
	}
	all["run-wall"], all["run-peak"] = median(walls[1:]), median(peaks[1:])
	return nil
}

// spent runs a program and returns its wall time in ms and its peak memory in MiB.
func spent(ctx context.Context, program string, arguments ...string) (wall, peak float64, err error) {
	command := exec.CommandContext(ctx, program, arguments...)
	command.Stderr = os.Stderr
	began := time.Now()
	if err := command.Run(); err != nil {
		return 0, 0, err
	}
	wall = float64(time.Since(began)) / float64(time.Millisecond)
	return wall, float64(command.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) / 1024, nil
}
