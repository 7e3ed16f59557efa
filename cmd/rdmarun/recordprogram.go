package main

import (
	"bytes"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/ownfile"
	"rdmarun/host/replay"
	"rdmarun/host/trace"
)

const recordLong = `Run a program, and write a scenario that repeats its calls of librdmacm and libibverbs,
and those of the processes that it starts. The scenario has connections, queue pairs,
regions, work requests with their data, completions and events, in their order. Each
process is a role. Of data longer than 256 bytes that does not repeat, only the beginning
is recorded. "rdmarun run" then repeats the calls on soft or on a device, without the
program.

The program runs as with "rdmarun trace". Both ends of a connection are needed: start
them by one command, such as a script. What a scenario cannot have is listed at the end.

The exit code is the program's.`

const recordExample = `  rdmarun record -o case.yaml sh -c './server & ./client; wait'
  rdmarun run case.yaml
  rdmarun run -P verbs case.yaml`

// recordFlags are the flags of record.
type recordFlags struct {
	traced tracedFlags
	output string
	pauses time.Duration
}

func newRecordCommand(a *app) *cobra.Command {
	var flags recordFlags
	command := &cobra.Command{
		Use:     "record -o FILE [--] PROGRAM [ARGS...]",
		Short:   "Make a scenario of what programs do",
		Long:    recordLong,
		Example: recordExample,
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.recordProgram(flags, args) },
	}
	flags.traced.register(command)
	command.Flags().StringVarP(&flags.output, "output", "o", "", "write the scenario to this file")
	_ = command.MarkFlagRequired("output")
	command.Flags().DurationVar(
		&flags.pauses, "pauses", 0, "make times of this length and more without a call steps (sleep), such as 10ms",
	)
	return command
}

// recordProgram runs a program, and writes a scenario of its calls.
func (a *app) recordProgram(flags recordFlags, args []string) error {
	if err := flags.traced.check(); err != nil {
		return err
	}
	run, err := a.prepareTraced(flags.traced, args)
	if err != nil {
		return err
	}
	recorder := replay.NewRecorder()
	recorder.Pauses = flags.pauses
	collector, err := a.collectCalls(run, trace.Options{
		Take: recorder.Take, Complete: true, Contents: true, Processes: true,
	})
	if err != nil {
		return err
	}
	status, err := a.runTraced("record", run)
	collector.Close()
	if err != nil {
		return err
	}
	var text bytes.Buffer
	name := strings.TrimSuffix(filepath.Base(flags.output), filepath.Ext(flags.output))
	if err := recorder.Write(&text, name, args); err != nil {
		return withExit(exitEnvironment, err)
	}
	for _, sentence := range recorder.Missing() {
		a.warn(sentence)
	}
	file, err := ownfile.Create(flags.output, ownfile.Shared)
	if err != nil {
		return withExit(exitEnvironment, err)
	}
	_, err = file.Write(text.Bytes())
	if err := errors.Join(err, file.Close()); err != nil {
		return withExit(exitEnvironment, err)
	}
	return reported(traceExit(status))
}
