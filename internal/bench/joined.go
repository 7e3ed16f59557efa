package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// serveNATS is set in a process of this program that is a NATS server, as a standing lab has one.
const serveNATS = "RDMARUN_BENCH_NATS"

// background starts a program that ends with the context, and waits for a line with a word, if there is one; end ends
// it.
func background(ctx context.Context, word, program string, arguments ...string) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	command := exec.CommandContext(ctx, program, arguments...)
	command.Env = append(os.Environ(), serveNATS+"=1")
	said, err := command.StderrPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	end = func() {
		cancel()
		_ = command.Wait() // it was killed
	}
	if word == "" {
		go func() { _, _ = io.Copy(io.Discard, said) }()
		return end, nil
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if strings.Contains(lines.Text(), word) {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return end, nil
		}
	}
	end()
	return nil, fmt.Errorf("%s ends before it says %q", program, word)
}

// measureJoinedRun takes the scenario that ships over two agents that wait on a NATS server, from the command to the
// summary.
func measureJoinedRun(ctx context.Context, p paths, _ string, all figures) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	address := listener.Addr().String()
	host, port, _ := net.SplitHostPort(address)
	if err := listener.Close(); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	end, err := background(ctx, "", self, "-a", host, "-p", port)
	if err != nil {
		return err
	}
	defer end()
	for { // it says nothing
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	for _, name := range []string{"a", "b"} {
		end, err := background(ctx, "waits on", p.rdmarun, "agent", "--join", "nats://"+address, "--name", name)
		if err != nil {
			return err
		}
		defer end()
	}
	var walls []float64
	for range rounds {
		wall, _, err := spent(
			ctx, p.rdmarun, "run", "-q", "--nats", "nats://"+address, "--place", "server=a,client=b", "--wait", "10s",
			p.scenario,
		)
		if err != nil {
			return err
		}
		walls = append(walls, wall)
	}
	all["joined-run-wall"] = median(walls)
	return nil
}
