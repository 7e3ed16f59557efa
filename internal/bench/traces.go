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

// messagesOfCheck is long enough that the start of the programs does not count.
const messagesOfCheck = 300000

// measureChecks measures what a message of 64 bytes costs two programs under "rdmarun check", and under "rdmarun exec",
// in turn.
func measureChecks(ctx context.Context, p paths, all figures, skipped map[string]string) error {
	if _, err := exec.LookPath("ib_send_bw"); err != nil {
		skipped["check-message"] = err.Error()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	var checked, plain []float64
	for range rounds {
		without, err := messageCost(ctx, p, "exec")
		if err != nil {
			return err
		}
		with, err := messageCost(ctx, p, "check")
		if err != nil {
			return err
		}
		plain, checked = append(plain, without), append(checked, with)
	}
	all["check-message"], all["exec-message"] = median(checked), median(plain)
	return nil
}

// messageCost is the nanoseconds of a message of ib_send_bw, by the rate that its client prints. The client is started
// again until the server listens.
func messageCost(ctx context.Context, p paths, command string) (float64, error) {
	port, err := freePort()
	if err != nil {
		return 0, err
	}
	program := fmt.Sprintf("ib_send_bw -s 64 -n %d -F -p %s", messagesOfCheck, port)
	script := fmt.Sprintf(
		"%s >/dev/null & for try in $(seq 50); do %s 127.0.0.1 2>/dev/null && break; sleep 0.1; done; wait",
		program, program,
	)
	printed, err := exec.CommandContext(ctx, p.rdmarun, command, "--", "sh", "-c", script).Output()
	if err != nil {
		return 0, fmt.Errorf("rdmarun %s ib_send_bw: %w", command, err)
	}
	for line := range strings.Lines(string(printed)) {
		// Size, iterations, peak and average rate in bytes, millions of messages a second.
		fields := strings.Fields(line)
		if len(fields) != 5 || fields[0] != "64" {
			continue
		}
		if rate, err := strconv.ParseFloat(fields[4], 64); err == nil && rate > 0 {
			return 1000 / rate, nil
		}
	}
	return 0, fmt.Errorf("rdmarun %s ib_send_bw printed no rate: %s", command, printed)
}
