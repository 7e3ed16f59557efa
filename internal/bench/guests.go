package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"rdmarun/host/guest"
	"rdmarun/rdmacore"
)

const rounds = 5

// guestPrints are the lines that guests/hop_c prints, with the figure of each and what its number is divided by.
var guestPrints = []struct {
	line, figure string
	figured      func(float64) float64
}{
	{"call", "guest-call", func(tenths float64) float64 { return tenths / 10 }},
	{"poll", "guest-empty-poll", func(tenths float64) float64 { return tenths / 10 }},
	{"send", "guest-send-64B-one-way", func(tenths float64) float64 { return tenths / 1e4 }},
	{"write", "guest-write-64B-one-way", func(tenths float64) float64 { return tenths / 1e4 }},
	{"list", "guest-write-8B", func(tenths float64) float64 { return 1e4 / tenths }},
	{"bulk", "guest-write-1MiB", func(ns float64) float64 { return (1 << 20) / ns }},
}

// measureGuests runs two guests in this process, in C, and reads what the client prints.
func measureGuests(ctx context.Context, p paths, all figures) (err error) {
	folder, err := os.MkdirTemp("", "rdmarun-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	module := filepath.Join(folder, "hop.wasm")
	if out, err := exec.CommandContext(ctx, "clang", "--target=wasm32", "-O2", "-mbulk-memory", "-nostdlib", "-Isdk/c",
		"-Wl,--no-entry",
		filepath.Join(p.guest, "hop.c"), "-o", module).CombinedOutput(); err != nil {
		return fmt.Errorf("compile the guest: %w\n%s", err, out)
	}
	provider, err := rdmacore.Open(rdmacore.Soft)
	if err != nil {
		return err
	}
	defer provider.Close()
	runtime, err := guest.New(ctx, guest.RuntimeConfig{})
	if err != nil {
		return err
	}
	defer runtime.Close(ctx)
	compiled, err := runtime.Compile(ctx, module)
	if err != nil {
		return err
	}
	found := make(map[string][]float64)
	for range rounds {
		printed, err := hop(ctx, runtime, compiled, provider)
		if err != nil {
			return err
		}
		for _, each := range guestPrints {
			number, err := numberIn(printed, each.line)
			if err != nil {
				return err
			}
			found[each.figure] = append(found[each.figure], each.figured(number))
		}
	}
	for figure, values := range found {
		all[figure] = median(values)
	}
	all["guest-send-64B-more"] = 1e3 * (all["guest-send-64B-one-way"] - all["send-64B-one-way"])
	all["guest-empty-poll-more"] = all["guest-empty-poll"] - all["guest-call"]
	return nil
}

// numberIn is the number of a line of what the guest prints: a name, and a number.
func numberIn(printed, name string) (float64, error) {
	for line := range strings.Lines(printed) {
		if number, ok := strings.CutPrefix(strings.TrimSpace(line), name+" "); ok {
			return strconv.ParseFloat(number, 64)
		}
	}
	return 0, fmt.Errorf("the guest printed no %s:\n%s", name, printed)
}

// hop runs a server and a client to their end and returns what the client printed.
func hop(
	ctx context.Context, runtime *guest.Runtime, module *guest.Module, provider *rdmacore.Provider,
) (string, error) {
	listening := make(chan struct{})
	server, err := runtime.Start(ctx, module, guest.Config{
		Name: "server", Provider: provider, Args: []string{"server"},
		Barrier: func(string) <-chan struct{} { close(listening); return listening },
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
		Name: "client", Provider: provider, Stdout: &printed, Stderr: &printed, Args: []string{"client"},
	})
	if !client.OK() {
		return "", fmt.Errorf("client: %w\n%s", client.Err, &printed)
	}
	if result, err := server.Wait(ctx); err != nil || !result.OK() {
		return "", fmt.Errorf("server: %v %v", err, result.Err)
	}
	return printed.String(), nil
}
