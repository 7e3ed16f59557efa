package main

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/guest/trace"
	"rdmarun/host/lab"
	"rdmarun/host/lab/capture"
	"rdmarun/host/ownfile"
	"rdmarun/host/printable"
	"rdmarun/host/scenario"
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
	set.StringVar(
		&f.names, "trace", "",
		"show the calls of guests with arguments and results (optionally of these functions: post_send,poll_cq)",
	)
	set.Lookup("trace").NoOptDefVal = traceAll
	set.StringVar(&f.path, "trace-file", "", "write them to this file, not to standard error")
	completeFlag(command, "trace", func(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return append([]string{traceAll}, functionNames()...), cobra.ShellCompDirectiveNoFileComp
	})
}

// functionNames are those of all host functions.
func functionNames() []string {
	var names []string
	for _, function := range hostfuncs.Functions() {
		names = append(names, function.Name)
	}
	return names
}

// functions are those with shown calls; none: all.
func (f *traceFlags) functions() []string {
	if f.names == traceAll {
		return nil
	}
	return strings.Split(f.names, ",")
}

// open makes the tracer of the flags, if any; closing returns what is missing.
func (f *traceFlags) open(a *app, into **trace.Tracer) (closing func() error, err error) {
	if f.names == "" {
		if f.path != "" {
			return nil, usageError("--trace-file: there is no --trace to write to it")
		}
		return func() error { return nil }, nil
	}
	for _, name := range f.functions() {
		if err := oneOf(name, functionNames()); err != nil {
			return nil, usageError("--trace: %w", err)
		}
	}
	var out io.Writer = printable.NewWriter(a.stderr)
	closeFile := func() error { return nil }
	if f.path != "" {
		file, err := ownfile.Create(f.path, ownfile.Private)
		if err != nil {
			return nil, withExit(exitEnvironment, err)
		}
		out, closeFile = file, file.Close
	}
	tracer, err := trace.New(out, f.functions())
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

// traceGuests has the calls of an agent's guests written.
func traceGuests(out io.Writer, functions []string, config *scenario.RunConfig) (closing func() error, err error) {
	if config.GuestTrace, err = trace.New(out, functions); err != nil {
		return nil, err
	}
	return config.GuestTrace.Close, nil
}

// collect makes the agents of a lab send the calls of their guests; closing waits for the last of them, and reports
// what is missing.
func (f *traceFlags) collect(ctx context.Context, a *app, h *hosted, tracer *trace.Tracer) (closing func(), err error) {
	if tracer == nil {
		return func() {}, nil
	}
	calls := capture.CollectCalls(tracer.Elsewhere, f.functions(), h.names())
	wanted := calls.Wanted()
	h.trace = &wanted
	ended := func() {
		waiting, cancel := context.WithTimeout(context.WithoutCancel(ctx), captureEndTime)
		defer cancel()
		calls.Await(waiting, h.control.Gone)
		for _, lack := range calls.Lacks() {
			a.warn("--trace: " + lack)
		}
	}
	return ended, h.control.Handle(calls.Take, lab.SubjectCalls, lab.SubjectTraced)
}
