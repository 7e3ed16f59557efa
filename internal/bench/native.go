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
var programs = []string{
	"bench_latency", "bench_rate", "bench_copy", "bench_connect", "bench_sim", "bench_udp", "bench_idle",
	"bench_instructions",
}

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

// sleeper waits for an event before it looks for each completion, so that threads wake each other all the time.
var sleeper = words("ibv_rc_pingpong -e -g 0 -n 20000 -p")

// measureSleepers takes the processor's time of two processes of such a program under "rdmarun exec".
func measureSleepers(ctx context.Context, p paths, all figures, skipped map[string]string) error {
	if _, err := exec.LookPath(sleeper[0]); err != nil {
		skipped["exec-sleepers-user"] = err.Error()
		return nil
	}
	var systems, users []float64
	for range rounds {
		system, user, err := sleep(ctx, p)
		if err != nil {
			return err
		}
		systems, users = append(systems, system), append(users, user)
	}
	all["exec-sleepers-system"], all["exec-sleepers-user"] = median(systems), median(users)
	return nil
}

// sleep returns seconds, of server and client together.
func sleep(ctx context.Context, p paths) (system, user float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	port, err := freePort()
	if err != nil {
		return 0, 0, err
	}
	line := append([]string{"exec", "--fabric", fmt.Sprintf("bench-%d", os.Getpid()), "--"}, sleeper...)
	server := exec.CommandContext(ctx, p.rdmarun, append(line, port)...)
	if err := server.Start(); err != nil {
		return 0, 0, err
	}
	defer server.Process.Kill()
	var client *exec.Cmd
	for {
		// Until the server listens a client ends at once.
		client = exec.CommandContext(ctx, p.rdmarun, append(line, port, "127.0.0.1")...)
		printed, err := client.CombinedOutput()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return 0, 0, fmt.Errorf("%s: %s", sleeper[0], lastLine(printed))
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err := server.Wait(); err != nil {
		return 0, 0, err
	}
	for _, end := range []*exec.Cmd{server, client} {
		system += end.ProcessState.SystemTime().Seconds()
		user += end.ProcessState.UserTime().Seconds()
	}
	return system, user, nil
}
