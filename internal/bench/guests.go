package main

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"strconv"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

const rounds = 5

// measureGuests runs two ping-pong guests in this process and reads what the client prints.
func measureGuests(ctx context.Context, p paths, all figures) (err error) {
	provider, err := rdmacore.Open("soft")
	if err != nil {
		return err
	}
	defer provider.Close()
	runtime, err := guest.New(ctx, guest.RuntimeConfig{})
	if err != nil {
		return err
	}
	defer runtime.Close(ctx)
	module, err := runtime.Compile(ctx, p.guest)
	if err != nil {
		return err
	}
	var sends, polls []float64
	for range rounds {
		printed, err := pingpong(ctx, runtime, module, provider)
		if err != nil {
			return err
		}
		send, err := figureIn(printed, sendMedian)
		if err != nil {
			return err
		}
		poll, err := figureIn(printed, emptyPoll)
		if err != nil {
			return err
		}
		sends, polls = append(sends, send), append(polls, poll)
	}
	all["guest-send-64B-one-way"], all["guest-empty-poll"] = median(sends), median(polls)
	return nil
}

// The columns of a row of the client's report are messages, min, p50, p99 and max.
var (
	sendMedian = regexp.MustCompile(`(?m)^\s*SEND\s+\d+\s+[\d.]+\s+([\d.]+)`)
	emptyPoll  = regexp.MustCompile(`polls of an empty queue, ([\d.]+) ns`)
)

func figureIn(printed string, pattern *regexp.Regexp) (float64, error) {
	match := pattern.FindStringSubmatch(printed)
	if match == nil {
		return 0, fmt.Errorf("the guest printed no %s:\n%s", pattern, printed)
	}
	return strconv.ParseFloat(match[1], 64)
}

// pingpong runs a server and a client to their end and returns what the client printed.
func pingpong(ctx context.Context, runtime *guest.Runtime, module *guest.Module, provider *rdmacore.Provider) (string, error) {
	listening := make(chan struct{})
	server, err := runtime.Start(ctx, module, guest.Config{
		Name: "server", Provider: provider, Args: []string{"--server"},
		Barrier: func(context.Context, string) error { close(listening); return nil },
	})
	if err != nil {
		return "", err
	}
	select {
	case <-listening:
	case <-server.Done():
		return "", server.Result().Err
	}
	var printed bytes.Buffer
	client := runtime.Run(ctx, module, guest.Config{
		Name: "client", Provider: provider, Stdout: &printed, Stderr: &printed,
		Args: []string{"--client=self", "--count=50000", "--writes=0", "--polls=200000"},
	})
	if !client.OK() {
		return "", fmt.Errorf("client: %w\n%s", client.Err, &printed)
	}
	if result, err := server.Wait(ctx); err != nil || !result.OK() {
		return "", fmt.Errorf("server: %v %v", err, result.Err)
	}
	return printed.String(), nil
}
