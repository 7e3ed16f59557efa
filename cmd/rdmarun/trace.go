package main

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/guest/trace"
	"rdmarun/host/printable"
	"rdmarun/hostfuncs"
)

// traceFlags are --trace and --trace-file.
type traceFlags struct {
	names string
	path  string
}

// traceAll is --trace without names.
const traceAll = "all"

func (f *traceFlags) register(command *cobra.Command) {
	set := command.Flags()
	set.StringVar(&f.names, "trace", "", "show the calls of guests with their arguments and results; of these functions only (post_send,poll_cq)")
	set.Lookup("trace").NoOptDefVal = traceAll
	set.StringVar(&f.path, "trace-file", "", "write them to this file, not to standard error")
	completeFlag(command, "trace", func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		names := []string{traceAll}
		for _, function := range hostfuncs.Functions() {
			names = append(names, function.Name)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
}

// open makes the tracer that was asked for, if any; closing says what is missing.
func (f *traceFlags) open(a *app, into **trace.Tracer) (closing func() error, err error) {
	if f.names == "" {
		if f.path != "" {
			return nil, usageError("--trace-file: there is no --trace to write to it")
		}
		return func() error { return nil }, nil
	}
	var names []string
	if f.names != traceAll {
		names = strings.Split(f.names, ",")
	}
	var out io.Writer = printable.NewWriter(a.stderr)
	closeFile := func() error { return nil }
	if f.path != "" {
		file, err := os.Create(f.path)
		if err != nil {
			return nil, withExit(exitEnvironment, err)
		}
		out, closeFile = file, file.Close
	}
	tracer, err := trace.New(out, names)
	if err != nil {
		return nil, errors.Join(usageError("--trace: %v", err), closeFile())
	}
	*into = tracer
	return func() error {
		if err := errors.Join(tracer.Close(), closeFile()); err != nil {
			return withExit(exitEnvironment, err)
		}
		return nil
	}, nil
}
