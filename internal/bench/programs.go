package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// guestPrograms is the scenario in which programs of rdma-core are guests, of which make rdma-core builds this one.
const (
	guestPrograms = "guests/librdmacm/programs.yaml"
	rpingAsGuest  = "build/rdma-core/rping.wasm"
)

// measurePrograms measures the time from start to end of a rping between two guests, and of an unchanged one under
// "rdmarun exec". Both run over UDP.
func measurePrograms(ctx context.Context, p paths, all figures, skipped map[string]string) error {
	if _, err := os.Stat(rpingAsGuest); err != nil {
		skipped["rping-as-guests"] = err.Error()
		return nil
	}
	if _, err := exec.LookPath("rping"); err != nil {
		skipped["rping-as-guests"] = err.Error()
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	var guests, natives []float64
	for i := range 1 + rounds {
		begun := time.Now()
		command := exec.CommandContext(ctx, p.rdmarun, "run", "--link", "udp", "--id", "*::rping", guestPrograms)
		if printed, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("rping as guests: %w\n%s", err, printed)
		}
		if i == 0 { // it was compiled
			continue
		}
		guests = append(guests, time.Since(begun).Seconds())
		native, err := nativeRping(ctx, p)
		if err != nil {
			return err
		}
		natives = append(natives, native)
	}
	all["rping-as-guests"], all["rping-native"] = median(guests), median(natives)
	return nil
}

// nativeRping returns the seconds of a client from start to end.  A server that does not listen yet ends it at once,
// and rping trips over its own end now and then: it is tried again.
func nativeRping(ctx context.Context, p paths) (float64, error) {
	for attempt := range 20 {
		seconds, err := func() (float64, error) {
			port, err := freePort()
			if err != nil {
				return 0, err
			}
			line := []string{"exec", "--fabric", fmt.Sprintf("bench-%d-%d", os.Getpid(), attempt), "--", "rping",
				"-V", "-C1000", "-S1000", "-a", "127.0.0.1", "-p", port}
			server := exec.CommandContext(ctx, p.rdmarun, append(line, "-s")...)
			if err := server.Start(); err != nil {
				return 0, err
			}
			defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
			time.Sleep(200 * time.Millisecond)
			begun := time.Now()
			err = exec.CommandContext(ctx, p.rdmarun, append(line, "-c")...).Run()
			return time.Since(begun).Seconds(), err
		}()
		if failed := (*exec.ExitError)(nil); !errors.As(err, &failed) || ctx.Err() != nil {
			return seconds, err
		}
	}
	return 0, errors.New("rping under rdmarun exec fails each time")
}
