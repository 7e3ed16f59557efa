package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/plan"
	"rdmarun/host/scenario/record"
	"rdmarun/host/scenario/report"
	"rdmarun/host/scenario/run"
	"rdmarun/rdmacore"
)

const runLong = `Run scenarios: files, and all scenarios below directories (default: ./scenarios).

Everything is checked before anything runs; see "rdmarun validate".  A case fails
when an expectation does not hold, when it leaves completions or events behind that
nobody asked for, and when something cannot be freed.

Parameters of a scenario are set by -p NAME=VALUE, or in the environment as
RDMARUN_PARAM_NAME.  A case that lacks a parameter's value is skipped, unless its
file was named on the command line.

The first SIGINT or SIGTERM ends the running case, runs its "finally" steps and
frees everything; a second one ends rdmarun at once.`

const runExample = `  rdmarun run scenarios/rping.yaml
  rdmarun run scenarios/rping.yaml -p count=100 -p size=4KiB
  rdmarun run --provider verbs scenarios/rping.yaml -v
  rdmarun run scenarios/interop/rping-client.yaml -P verbs -p peer=192.0.2.1`

// runFlags are the flags of run.
type runFlags struct {
	provider string
	params   []string
	ids      []string
	timeout  time.Duration
	verbose  bool
	quiet    bool
	color    *choiceFlag
}

func newRunCommand(a *app) *cobra.Command {
	flags := runFlags{color: newColorFlag()}
	command := &cobra.Command{
		Use:     "run [FILE|DIRECTORY...]",
		Short:   "Run scenarios",
		Long:    runLong,
		Example: runExample,
		RunE: func(command *cobra.Command, args []string) error {
			return runScenarios(command.Context(), a, flags, args)
		},
		ValidArgsFunction: completeScenarios,
	}
	set := command.Flags()
	set.StringVarP(&flags.provider, "provider", "P", "soft", "provider to run on (soft, verbs)")
	set.StringArrayVarP(&flags.params, "param", "p", nil, "set a parameter: NAME=VALUE (repeatable)")
	set.StringArrayVar(&flags.ids, "id", nil, "run only cases with this id, * and ? allowed (repeatable)")
	set.DurationVar(&flags.timeout, "timeout", 0, "time for everything; 0 is without limit (exit code 124)")
	set.BoolVarP(&flags.verbose, "verbose", "v", false, "show each step as it ends")
	set.BoolVarP(&flags.quiet, "quiet", "q", false, "show failures and counts only")
	flags.color.register(command)
	complete := cobra.FixedCompletions(rdmacore.Providers(), cobra.ShellCompDirectiveNoFileComp)
	if err := command.RegisterFlagCompletionFunc("provider", complete); err != nil {
		panic(err) // the flag was defined some lines above
	}
	return command
}

// completeScenarios offers YAML files and directories.
func completeScenarios(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt
}

// defaultScenarios is where scenarios are when the command line does not say.
const defaultScenarios = "scenarios"

func runScenarios(ctx context.Context, a *app, flags runFlags, paths []string) (err error) {
	params, err := parseParams(a.env, flags.params)
	if err != nil {
		return err
	}
	for _, id := range flags.ids {
		if _, err := path.Match(id, ""); err != nil {
			return usageError("--id %s: %w", id, err)
		}
	}
	if len(paths) == 0 {
		paths = []string{defaultScenarios}
	}
	checked := scenario.Check(paths, params)
	if err := a.reportChecked(checked, flags.color.style(a, a.stderr)); err != nil {
		return err
	}
	if err := missingParams(checked.Scenarios); err != nil {
		return err
	}
	if flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, flags.timeout, fmt.Errorf("the run took longer than --timeout %s", flags.timeout))
		defer cancel()
	}
	provider, err := rdmacore.Open(flags.provider)
	if err != nil {
		return withExit(exitEnvironment, err)
	}
	defer func() { err = errors.Join(err, provider.Close()) }()
	human := report.NewHuman(a.stdout, report.HumanOptions{
		Style: flags.color.style(a, a.stdout), Width: terminalWidth(a.stdout), Quiet: flags.quiet, Steps: flags.verbose,
	})
	totals, err := scenario.Run(ctx, checked.Scenarios, scenario.RunConfig{
		Provider: provider, IDs: flags.ids, Consumers: []record.Consumer{human},
		Rerun: flags.rerun(), GuestCache: a.env[host.CacheVariable],
	})
	if err != nil {
		return err
	}
	return reported(runCode(totals))
}

// runCode is the exit code of a run; its order is that of "rdmarun help exit-codes".  A signal's code is
// codeOf's affair, which knows which one it was.
func runCode(t record.Totals) exitCode {
	switch {
	case t.Bug:
		return exitBug
	case t.Interrupted:
		return exitInterrupted
	case t.TimedOut:
		return exitTimeout
	case t.Errors > 0:
		return exitEnvironment
	case t.Failed > 0:
		return exitFailed
	case t.Passed+t.Skipped == 0:
		return exitNothing
	}
	return exitOK
}

// parseParams reads -p NAME=VALUE, and RDMARUN_PARAM_NAME of the environment.
func parseParams(env map[string]string, flags []string) (scenario.Params, error) {
	const prefix = "RDMARUN_PARAM_"
	params := scenario.Params{Given: make(map[string]string), Environment: make(map[string]string)}
	for name, value := range env {
		if param, ok := strings.CutPrefix(name, prefix); ok && value != "" {
			params.Environment[param] = value
		}
	}
	for _, flag := range flags {
		name, value, ok := strings.Cut(flag, "=")
		if !ok || name == "" {
			return params, withHint(usageError("-p %s: not of the form NAME=VALUE", flag), "for example: -p count=100")
		}
		params.Given[name] = value
	}
	return params, nil
}

// missingParams refuses files that were named but lack the value of a parameter: who names a file wants
// it to run.
func missingParams(scenarios []scenario.Scenario) error {
	for _, s := range scenarios {
		if s.Named && len(s.Program.Missing) > 0 {
			return withHint(usageError("%s needs a value for the parameter %s", s.Path, s.Program.Missing[0]),
				fmt.Sprintf("-p %s=VALUE", s.Program.Missing[0]))
		}
	}
	return nil
}

// rerun is the command line less its files, for the last line of a failure.
func (f *runFlags) rerun() string {
	words := []string{"rdmarun", "run"}
	if f.provider != "soft" {
		words = append(words, "-P", f.provider)
	}
	for _, param := range f.params {
		words = append(words, "-p", run.ShellWord(param))
	}
	return strings.Join(words, " ")
}

// paramErrors shows what is wrong with -p and returns the last of it.
func (a *app) paramErrors(list []*plan.ParamError) (err error) {
	for _, each := range list {
		if err != nil {
			printError(a.stderr, err)
		}
		err = usageError("%s", each)
		if each.Hint != "" {
			err = withHint(err, each.Hint)
		}
	}
	return err
}
