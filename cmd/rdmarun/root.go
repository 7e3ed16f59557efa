package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

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
	newRunCommand,
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
	command, err := root.ExecuteContextC(ctx)
	if err != nil && !running {
		// Cobra refused the command line before any command began.
		help := fmt.Sprintf("see %q", strings.TrimSpace(command.CommandPath()+" --help"))
		if near := nearestFlag(command, err); near != "" {
			help = near
		}
		err = withHint(withExit(exitUsage, plainly(err)), help)
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
	root.SetArgs(a.args)
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

// enterThrough makes a command take unset flags from the environment and the configuration and then note that it runs:
// errors before that point are the user's command line, errors after it are the command's own.
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
