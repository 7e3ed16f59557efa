package main

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// captureFlags are --capture and --capture-snaplen.
type captureFlags struct {
	path       string
	snapLength int
}

func (f *captureFlags) register(command *cobra.Command) {
	set := command.Flags()
	set.StringVar(&f.path, "capture", "", "write what soft sends to this pcapng file or pipe, for Wireshark and tshark")
	set.IntVar(&f.snapLength, "capture-snaplen", 0, "keep so many bytes of each packet of the capture; 0 is all")
}

func (f *captureFlags) check() error {
	switch {
	case f.snapLength < 0 || f.snapLength > math.MaxInt32:
		return usageError("--capture-snaplen %d: a number of bytes from 0", f.snapLength)
	case f.snapLength > 0 && f.path == "":
		return usageError("--capture-snaplen: there is no --capture to keep less of")
	}
	return nil
}

// pass tells the library of rdmarun exec.  The process stays the same when the program takes its place.
func (f *captureFlags) pass(env map[string]string) error {
	if err := f.check(); err != nil || f.path == "" {
		return err
	}
	path, err := filepath.Abs(f.path) // the program may go elsewhere before it begins
	if err != nil {
		return withExit(exitEnvironment, err)
	}
	env["RDMARUN_EXEC_CAPTURE"] = fmt.Sprintf("%d:%s", os.Getpid(), path)
	env["RDMARUN_EXEC_CAPTURE_SNAPLEN"] = strconv.Itoa(f.snapLength)
	return nil
}

// open creates the file, and has the provider of each case write to it; closing ends it and says what is missing.
func (f *captureFlags) open(a *app, config *scenario.RunConfig) (closing func() error, err error) {
	if f.path == "" {
		return func() error { return nil }, nil
	}
	capture, err := rdmacore.CreateCapture(f.path, rdmacore.CaptureOptions{
		Application: "rdmarun " + buildVersion().Version, SnapLength: uint32(f.snapLength),
	})
	if err != nil {
		return nil, withExit(exitEnvironment, fmt.Errorf("--%w", err))
	}
	config.Capture = capture
	return func() error {
		totals, err := capture.Close()
		switch {
		case err != nil:
			err = withHint(withExit(exitEnvironment, fmt.Errorf("--%w", err)),
				"make room where the file is, or keep less of each packet with --capture-snaplen")
		case totals.Missing > 0:
			a.warn(fmt.Sprintf("--capture %s: %d of %d packets are missing, since whoever takes them was too slow; keep less of each with --capture-snaplen",
				f.path, totals.Missing, totals.Missing+totals.Packets))
		}
		return errors.Join(err)
	}, nil
}
