package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/lab"
	"rdmarun/host/lab/capture"
	"rdmarun/host/ownfile"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore"
)

// captureFlags are --capture, --capture-on-failure and --capture-snaplen.
type captureFlags struct {
	path, onFailure string
	snapLength      int
}

func (f *captureFlags) register(command *cobra.Command) {
	set := command.Flags()
	set.StringVar(
		&f.path, "capture", "", "write what soft sends to this pcapng file or pipe (for Wireshark and tshark)",
	)
	set.IntVar(&f.snapLength, "capture-snaplen", 0, "bytes that the capture keeps of each packet (0: all)")
}

// registerOnFailure registers what runs of cases have.
func (f *captureFlags) registerOnFailure(command *cobra.Command) {
	command.Flags().StringVar(
		&f.onFailure, "capture-on-failure", "",
		"write what soft sends around each failure to a pcapng file in this folder",
	)
	_ = command.MarkFlagDirname("capture-on-failure")
}

func (f *captureFlags) check() error {
	switch {
	case f.path != "" && f.onFailure != "":
		return withHint(
			usageError("--capture and --capture-on-failure exclude each other"),
			"the file of --capture has the packets of failures, too",
		)
	case f.snapLength < 0 || f.snapLength > math.MaxInt32:
		return usageError("--capture-snaplen %d: a number of bytes from 0", f.snapLength)
	case f.snapLength > 0 && f.path == "" && f.onFailure == "":
		return usageError("--capture-snaplen: there is no --capture to keep less of")
	}
	return nil
}

// absolute is the path of --capture for a program that may go to another folder; "": there is none.
func (f *captureFlags) absolute() (string, error) {
	if err := f.check(); err != nil || f.path == "" {
		return "", err
	}
	path, err := filepath.Abs(f.path)
	if err != nil {
		return "", withExit(exitEnvironment, err)
	}
	return path, nil
}

// checkCaptured refuses a capture of hosts that all are on something else than soft, and names those that are.
func (f *runFlags) checkCaptured(a *app, hosts []lab.Host) error {
	flag := "--capture"
	if f.capture.onFailure != "" {
		flag = "--capture-on-failure"
	}
	if f.capture.path == "" && f.capture.onFailure == "" || f.chosen {
		return nil
	}
	var silent []string
	for _, host := range hosts {
		if host.Provider != "" && host.Provider != rdmacore.Soft {
			silent = append(silent, host.Name)
		}
	}
	switch {
	case len(silent) == 0:
		return nil
	case len(silent) == len(hosts):
		return errNotCaptured(flag)
	}
	a.warn(fmt.Sprintf(
		"%s: only provider soft shows its packets, so there are none of %s", flag, strings.Join(silent, ", "),
	))
	return nil
}

// errNotCaptured is why there is nothing to capture.
func errNotCaptured(flag string) error {
	return withHint(
		usageError("%s: only provider soft shows its packets", flag),
		"on a network, tcpdump on the device's interface shows them",
	)
}

// captureEndTime bounds the wait for the agents' last packets.
const captureEndTime = 30 * time.Second

// collect creates the file, and makes the agents of a lab send their captures to it; closing ends it and returns what
// is missing.
func (f *captureFlags) collect(
	ctx context.Context, a *app, h *hosted, clocks map[string]record.Clock, config *scenario.RunConfig,
) (closing func() error, err error) {
	if f.onFailure != "" {
		return f.keepOf(a, h, clocks, config)
	}
	if f.path == "" {
		return func() error { return nil }, nil
	}
	packets, err := capture.Collect(f.path, uint32(f.snapLength), h.names())
	if err != nil {
		return func() error { return nil }, withExit(exitEnvironment, fmt.Errorf("--capture: %w", err))
	}
	wanted := packets.Wanted()
	h.capture = &wanted
	ended := func() error {
		waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), captureEndTime)
		defer cancel()
		packets.Await(waiting, h.control.Gone)
		lacks, err := packets.Finish("rdmarun "+buildVersion().Version, clocks)
		for _, lack := range lacks {
			a.warn(fmt.Sprintf("--capture %s: %s", f.path, lack))
		}
		if err != nil {
			err = withHint(
				withExit(exitEnvironment, fmt.Errorf("--%w", err)),
				"make room where the file is, or keep less of each packet with --capture-snaplen",
			)
		}
		return err
	}
	return ended, h.control.Handle(packets.Take, lab.SubjectPackets, lab.SubjectCaptured)
}

// open creates the file, and makes the provider of each case write to it; closing ends it and returns what is missing.
func (f *captureFlags) open(a *app, config *scenario.RunConfig) (closing func() error, err error) {
	if f.onFailure != "" {
		return f.keep(a, config)
	}
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
			a.warn(fmt.Sprintf("--capture %s: %d of %d packets are missing, because their reader was too slow; "+
				"keep less of each with --capture-snaplen",
				f.path, totals.Missing, totals.Missing+totals.Packets))
		}
		return errors.Join(err)
	}, nil
}

// keep writes the packets around failures to files; closing reports the number of failures without a file.
func (f *captureFlags) keep(a *app, config *scenario.RunConfig) (closing func() error, err error) {
	failures, closing, err := f.folder(a, config)
	if err == nil {
		config.OnFailure = failures
	}
	return closing, err
}

// keepOf has the packets around failures that the hosts of a lab send written to files.
func (f *captureFlags) keepOf(
	a *app, h *hosted, clocks map[string]record.Clock, config *scenario.RunConfig,
) (closing func() error, err error) {
	failures, closing, err := f.folder(a, config)
	if err != nil {
		return closing, err
	}
	all := capture.OnFailureOf(failures, h.names(), clocks, h.control.Gone)
	wanted := all.Wanted()
	h.failures, config.OnFailure = &wanted, all
	return closing, h.control.Handle(all.Take, lab.SubjectPackets, lab.SubjectCaptured)
}

// folder makes the folder of the captures of failures; closing reports the number of failures without a file.
func (f *captureFlags) folder(
	a *app, config *scenario.RunConfig,
) (failures *capture.Failures, closing func() error, err error) {
	suffix := ""
	if config.Participant != nil && config.Participant.Controller == nil { // another process may have the same folder
		suffix = "-" + ownfile.Harmless(strings.Join(config.Participant.Roles, "-"))
	}
	failures, err = capture.OnFailure(f.onFailure, "rdmarun "+buildVersion().Version, suffix, uint32(f.snapLength))
	if err != nil {
		return nil, func() error { return nil }, withExit(exitEnvironment, fmt.Errorf("--capture-on-failure: %w", err))
	}
	return failures, func() error {
		if beyond := failures.Beyond(); beyond > 0 {
			a.warn(fmt.Sprintf(
				"--capture-on-failure %s: a run writes at most %d files and %dMiB; %s without one", f.onFailure,
				capture.MaxFiles, capture.MaxWritten>>20, count(beyond, "more failure"),
			))
		}
		return nil
	}, nil
}
