package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"rdmarun/host/output/terminal"
)

// app is everything a command may touch of the process it runs in.  Commands take it instead of
// package os, so that a test calls them with its own arguments, environment and writers.
type app struct {
	args   []string // without the program's name
	env    map[string]string
	stdin  io.Reader
	stdout io.Writer // the result asked for, nothing else
	stderr io.Writer // progress, warnings, errors
	// progress is what is shown of the running command; nil: nothing.
	progress *terminal.Progress
	// signals delivers SIGINT and SIGTERM; nil when the caller has none to deliver.
	signals <-chan os.Signal
	// releaseSignals gives the signals back to the system, so that a second one ends the process.
	releaseSignals func()
	// planForCrash and noPlanForCrash set what is done when native code crashes; nil: nothing.
	planForCrash   func(plan string, files ...*os.File)
	noPlanForCrash func()
	// confines means that the process is this command's alone, so that --sandbox may restrict it.
	confines bool
	// folders are what temporaryFolder made, to be removed when the command ends.
	folders []string
	// commands are the commands of the command line, one file each.
	commands []func(*app) *cobra.Command
}

// processApp is the app of the running process.
func processApp() *app {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return &app{
		args:           os.Args[1:],
		env:            environment(os.Environ()),
		stdin:          os.Stdin,
		stdout:         os.Stdout,
		stderr:         os.Stderr,
		signals:        signals,
		releaseSignals: func() { signal.Stop(signals) },
		commands:       commandConstructors,
		confines:       true,
	}
}

func environment(pairs []string) map[string]string {
	env := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// environmentPairs is the inverse of environment, in the order of names.
func environmentPairs(env map[string]string) []string {
	pairs := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		pairs = append(pairs, name+"="+env[name])
	}
	return pairs
}

// interruptError is the cause of a context that a signal ended.
type interruptError struct{ signal os.Signal }

func (e *interruptError) Error() string { return "interrupted (" + e.signal.String() + ")" }

func (e *interruptError) exitCode() exitCode {
	if e.signal == syscall.SIGTERM {
		return exitTerminated
	}
	return exitInterrupted
}

// interruptible returns a context that the first SIGINT or SIGTERM ends with an interruptError as
// its cause.  The second one is the system's again: a command that hangs while it cleans up can
// still be stopped.  The caller calls stop when the command has ended.
func (a *app) interruptible() (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	if a.signals != nil {
		go func() {
			select {
			case s := <-a.signals:
				// First of all: after the end of the context a second signal must be the system's.
				if a.releaseSignals != nil {
					a.releaseSignals()
				}
				cancel(&interruptError{s})
			case <-ctx.Done():
			}
		}()
	}
	return ctx, func() { cancel(nil) }
}

// temporaryFolder makes a folder that is removed when the command ends.  what is its purpose in a few words.
func (a *app) temporaryFolder(what string) (string, error) {
	folder, err := os.MkdirTemp("", "rdmarun-")
	if err != nil {
		return "", withHint(
			withExit(exitEnvironment, fmt.Errorf("a folder for %s: %w", what, err)), "set TMPDIR to another folder",
		)
	}
	a.folders = append(a.folders, folder)
	return folder, nil
}

// removeFolders removes what temporaryFolder made; a folder that cannot be removed is reported, but does not fail the
// command.
func (a *app) removeFolders() {
	for _, folder := range a.folders {
		if err := os.RemoveAll(folder); err != nil {
			a.warn(err.Error())
		}
	}
	a.folders = nil
}

const rootLong = `rdmarun runs RDMA scenarios (YAML) and guests (WebAssembly).

A scenario says what happens: who listens, who connects with which parameters,
what is posted and what must come back.  The same file runs on the embedded
provider "soft", which needs no RDMA hardware, and on a real device with
"--provider verbs".

Every flag can also be set in the environment: --provider as RDMARUN_PROVIDER, and
in ./rdmarun.yaml; see "rdmarun help config".`

const rootExample = `  rdmarun run scenarios/rping.yaml
  rdmarun run scenarios/rping.yaml -p count=100 -p size=4KiB
  rdmarun run --provider verbs scenarios/rping.yaml
  rdmarun guest run guest.wasm -- --flag-of-the-guest
  rdmarun list -t smoke
  rdmarun explain RNR_RETRY_EXC_ERR
  rdmarun devices`

// commandConstructors make the commands of rdmarun; a new command is one more line here.
var commandConstructors = []func(*app) *cobra.Command{
	newGuestCommand,
	newExecCommand,
	newTraceCommand,
	newCheckCommand,
	newRecordCommand,
	newLegalCommand,
	newRunCommand,
	newAgentCommand,
	newPerfCommand,
	newValidateCommand,
	newReportCommand,
	newCompareCommand,
	newConformanceCommand,
	newListCommand,
	newPackCommand,
	newExplainCommand,
	newSchemaCommand,
	newNewCommand,
	newSDKCommand,
	newABICommand,
	newDevicesCommand,
	newDoctorCommand,
	newConfigCommand,
	newVersionCommand,
	newCompletionCommand,
	newManCommand,
	newCrashedCommand,
}

// run runs the command line and returns the exit code.  It prints every error itself.
func (a *app) run() (code exitCode) {
	defer a.recoverPanic(&code)
	defer a.removeFolders()
	ctx, stop := a.interruptible()
	defer stop()

	root := newRootCommand(a)
	running := false
	for _, command := range allCommands(root) {
		a.enterThrough(command, &running)
	}
	err := errors.Join(strictHelp(root), checkCommand(root, withTestFlags(a.args)))
	command := root
	if err == nil {
		command, err = root.ExecuteContextC(ctx)
	}
	if err != nil && !running {
		// The command line was rejected before any command began.
		help := fmt.Sprintf("see %q", strings.TrimSpace(command.CommandPath()+" --help"))
		if near := nearestFlag(command, err); near != "" {
			help = near
		}
		if err = withExit(exitUsage, plainly(err)); !hasHint(err) {
			err = withHint(err, help)
		}
	}
	if err != nil {
		printError(a.stderr, err)
	}
	return codeOf(ctx, err)
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:           "rdmarun",
		Short:         "Run RDMA scenarios and guests",
		Long:          rootLong,
		Example:       rootExample,
		Version:       buildVersion().Version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetArgs(withTestFlags(a.args))
	root.SetIn(a.stdin)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	for _, construct := range a.commands {
		root.AddCommand(construct(a))
	}
	for _, topic := range topics() {
		root.AddCommand(topic.command(a))
	}
	return root
}

func allCommands(root *cobra.Command) []*cobra.Command {
	commands := []*cobra.Command{root}
	for _, child := range root.Commands() {
		commands = append(commands, allCommands(child)...)
	}
	return commands
}

// enterThrough makes a command take unset flags from the environment and the configuration, and then record that it
// runs. Errors before that point are the user's command line, errors after it are the command's own.
func (a *app) enterThrough(command *cobra.Command, running *bool) {
	inner := command.RunE
	if inner == nil {
		return
	}
	command.RunE = func(cmd *cobra.Command, args []string) error {
		if err := flagsFromEnvironment(cmd.Flags(), a.env); err != nil {
			return err
		}
		if err := a.flagsFromFiles(cmd); err != nil {
			return err
		}
		*running = true
		return inner(cmd, args)
	}
}

// flagsFromFiles sets flags from the configuration, after the command line and the environment.
func (a *app) flagsFromFiles(command *cobra.Command) error {
	c := a.readConfiguration(flagNames(command.Root()))
	if c.wrong.Len() == 0 {
		c.apply(command.Flags())
	}
	if command.Annotations["configuration"] == configOptional["configuration"] {
		return nil
	}
	return a.settingsErrors(c.wrong)
}
