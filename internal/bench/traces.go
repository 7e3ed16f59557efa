package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tracedProgram prints the cost of calls, and tools/exec-test/trace.sh runs it too.
const tracedProgram = "build/exec-test/traced"

// measureTraces measures what "rdmarun trace" adds to a call, compared with "rdmarun exec", in turn.
func measureTraces(ctx context.Context, p paths, all figures, skipped map[string]string) error {
	if _, err := os.Stat(tracedProgram); err != nil {
		skipped["trace-data-call"], skipped["trace-queue-pair"] = err.Error(), err.Error()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	folder, err := os.MkdirTemp("", "bench-trace-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var data, control []float64
	for range rounds {
		without, err := costs(ctx, p, "exec", "--link", "local")
		if err != nil {
			return err
		}
		table := filepath.Join(folder, "table")
		with, err := costs(ctx, p, "trace", "--link", "local", "-c", "-o", table)
		if err != nil {
			return err
		}
		// A call that is lost costs less than one that is recorded.
		if text, err := os.ReadFile(table); err != nil || bytes.Contains(text, []byte("calls are missing")) {
			continue
		}
		data = append(data, (with["write_and_poll"]-without["write_and_poll"])/2) // a post, and a poll that takes
		control = append(control, (with["queue_pair"]-without["queue_pair"])/5)   // of a queue pair's life
	}
	if len(data) == 0 {
		why := "the machine is too busy: calls were lost in each round"
		skipped["trace-data-call"], skipped["trace-queue-pair"] = why, why
		return nil
	}
	all["trace-data-call"], all["trace-queue-pair"] = median(data), median(control)
	return nil
}

// costs are the nanoseconds of calls by name, as the program prints them.
func costs(ctx context.Context, p paths, command ...string) (map[string]float64, error) {
	line := append(command, "--", tracedProgram, "cost")
	printed, err := exec.CommandContext(ctx, p.rdmarun, line...).Output()
	if err != nil {
		return nil, fmt.Errorf("rdmarun %s: %w", strings.Join(line, " "), err)
	}
	found := map[string]float64{}
	for row := range strings.Lines(string(printed)) {
		name, value, _ := strings.Cut(strings.TrimSpace(row), " ")
		if found[name], err = strconv.ParseFloat(value, 64); err != nil {
			return nil, fmt.Errorf("%s printed %q", tracedProgram, row)
		}
	}
	if found["write_and_poll"] == 0 || found["queue_pair"] == 0 {
		return nil, errors.New(tracedProgram + " has printed no costs")
	}
	return found, nil
}
