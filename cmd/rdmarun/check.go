package main

import (
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/check"
	"rdmarun/host/check/finding"
	"rdmarun/host/trace"
)

const checkLong = `Run a program, and report mistakes in how it uses libibverbs and librdmacm, as valgrind does
for memory. The program runs on the embedded provider, as with "rdmarun exec", or with
-P verbs on the system's libraries and a real device. The same library as for "rdmarun
trace" records its calls.

Each finding has a name, what is wrong, and the function and the line that made the
call. Related places follow, such as where an object was made, then the rule and what to
do. Lines need debug information (cc -g). "rdmarun explain finding" lists all kinds:

  errors     break a rule, such as a region that is deregistered while a request uses it
  warnings   work by luck, or leave something behind, such as two receives into one
             buffer, or an object that is left at the exit
  hints      are slow or hard to debug; --hints shows them

Memory that is sent is compared when its completion is polled, and free and munmap are seen. When
the program reads a buffer is not known.

The exit code is the program's. If the program succeeds and there are errors, it is 1. With --strict
warnings count as errors.`

const checkExample = `  rdmarun check ./server
  rdmarun check --hints rping -s -a 127.0.0.1 -C 1
  rdmarun check -o findings.sarif ./client 192.0.2.1
  rdmarun check --suppress object_left,receive_late ./server
  rdmarun check -P verbs ./server`

// checkFlags are the flags of check.
type checkFlags struct {
	traced   tracedFlags
	output   string
	hints    bool
	strict   bool
	suppress []string
}

func newCheckCommand(a *app) *cobra.Command {
	var flags checkFlags
	command := &cobra.Command{
		Use:     "check [--] PROGRAM [ARGS...]",
		Short:   "Find mistakes in how a program uses RDMA",
		Long:    checkLong,
		Example: checkExample,
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.checkProgram(flags, args) },
	}
	set := command.Flags()
	flags.traced.register(command)
	set.StringVarP(
		&flags.output, "output", "o", "",
		"write findings to this file (default: stderr), by the end of its name: .jsonl (JSON), .sarif, .xml (JUnit)",
	)
	set.BoolVar(&flags.hints, "hints", false, "show hints, too")
	set.BoolVar(&flags.strict, "strict", false, "fail for warnings, too")
	set.StringSliceVar(&flags.suppress, "suppress", nil, "leave out findings of these kinds (rdmarun explain finding)")
	completeFlag(command, "suppress", cobra.FixedCompletions(findingNames(), cobra.ShellCompDirectiveNoFileComp))
	return command
}

func findingNames() (names []string) {
	for _, kind := range finding.Kinds() {
		names = append(names, kind.Name)
	}
	return names
}

// checkProgram runs a program, and reports its mistakes.
func (a *app) checkProgram(flags checkFlags, args []string) error {
	if err := flags.traced.check(); err != nil {
		return err
	}
	names := findingNames()
	for _, name := range flags.suppress {
		if err := oneOf(name, names); err != nil {
			return usageError("--suppress: %w", err)
		}
	}
	run, err := a.prepareTraced(flags.traced, args)
	if err != nil {
		return err
	}
	out, closeOutput, err := a.traceOutput(flags.output)
	if err != nil {
		return err
	}
	checker, err := check.NewChecker()
	if err != nil {
		return errors.Join(err, closeOutput())
	}
	collector, err := a.collectCalls(run, trace.Options{
		Take: checker.Take, Numbers: true, Nested: true, Complete: true, Processes: true, Memory: true,
	})
	if err != nil {
		return errors.Join(err, closeOutput())
	}
	status, err := a.runTraced("check", run)
	collector.Close()
	if err != nil {
		return errors.Join(err, closeOutput())
	}
	found := checker.Close(flags.suppress, func(pid int) check.Ending {
		switch {
		case pid != run.pid:
			return check.Unknown // a process that the program has started
		case status.Signaled():
			return check.Killed
		case status.ExitStatus() != 0:
			return check.Failed
		}
		return check.Succeeded
	})
	for _, sentence := range checker.Missing() {
		a.warn(sentence)
	}
	if err := errors.Join(a.writeFindings(out, flags, found), closeOutput()); err != nil {
		return withExit(exitEnvironment, err)
	}
	code := traceExit(status)
	worst := check.Worst(found)
	if code == exitOK && (worst == finding.Error || flags.strict && worst == finding.Warning) {
		code = exitFailed
	}
	return reported(code)
}

func (a *app) writeFindings(out io.Writer, flags checkFlags, found []check.Finding) error {
	switch {
	case strings.HasSuffix(flags.output, ".jsonl"):
		return check.WriteLines(out, found)
	case strings.HasSuffix(flags.output, ".sarif"):
		return check.WriteSARIF(out, found)
	case strings.HasSuffix(flags.output, ".xml"):
		return check.WriteJUnit(out, found, flags.strict)
	}
	return check.WriteText(out, found, flags.hints)
}
