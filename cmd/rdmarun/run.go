package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/record"
	"rdmarun/host/scenario/report"
	"rdmarun/host/scenario/run"
	"rdmarun/rdmacore"
)

const runLong = `Run scenarios: files, and all scenarios below directories (default: ./scenarios).

Everything is checked before anything runs; see "rdmarun validate".  A case fails
when an expectation does not hold, when it leaves completions or events behind that
nobody asked for, and when something cannot be freed.

Parameters of a scenario are set by -p NAME=VALUE, in a file (--params), or in the
environment as RDMARUN_PARAM_NAME.  A case that lacks a parameter's value is
skipped, unless its file was named on the command line.

Shown is a line for each case as it ends, then the failures in full, each with what
led to it and the command that runs it again, then the counts.

The first SIGINT or SIGTERM ends the running case, runs its "finally" steps and
frees everything; a second one ends rdmarun at once.`

const runExample = `  rdmarun run scenarios/rping.yaml
  rdmarun run scenarios/rping.yaml -p count=100 -p size=4KiB
  rdmarun run --provider verbs scenarios/rping.yaml -v
  rdmarun run -t 'smoke && !slow' -j 4 --retries 1
  rdmarun run --failed
  rdmarun run scenarios/interop/rping-client.yaml -P verbs -p peer=192.0.2.1`

// runFlags are the flags of run.
type runFlags struct {
	provider   string
	params     paramFlags
	selection  selectionFlags
	timeout    time.Duration
	jobs       int
	repeat     string
	retries    int
	seed       seedFlag
	failFast   bool
	strict     bool
	allowEmpty bool
	verbose    bool
	quiet      bool
	out        outFlags
	color      *choiceFlag
}

func newRunCommand(a *app) *cobra.Command {
	flags := runFlags{color: newColorFlag()}
	command := &cobra.Command{
		Use:     "run [FILE|DIRECTORY...]",
		Short:   "Run scenarios",
		Long:    runLong,
		Example: runExample,
		RunE: func(command *cobra.Command, args []string) error {
			return runScenarios(command.Context(), a, &flags, args)
		},
		ValidArgsFunction: completeScenarios,
	}
	set := command.Flags()
	set.StringVarP(&flags.provider, "provider", "P", "soft", "provider to run on (soft, verbs)")
	flags.params.register(a, command)
	flags.selection.register(a, command)
	set.BoolVar(&flags.allowEmpty, "allow-empty", false, "an empty selection is no failure (otherwise exit code 5)")
	set.IntVarP(&flags.jobs, "jobs", "j", 1, "cases at once, each on a provider of its own (soft only)")
	set.StringVar(&flags.repeat, "repeat", "1", "run everything N times, or until-fail")
	set.IntVar(&flags.retries, "retries", 0, "try a failed case again; a pass is then reported as flaky")
	set.Var(&flags.seed, "seed", "draw soft's random numbers from this, so that a run repeats")
	set.BoolVar(&flags.failFast, "fail-fast", false, "start nothing more after a failure")
	set.BoolVar(&flags.strict, "strict", false, "a skipped case is a failure")
	set.DurationVar(&flags.timeout, "timeout", 0, "time for everything; 0 is without limit (exit code 124)")
	set.BoolVarP(&flags.verbose, "verbose", "v", false, "show each step as it ends")
	set.BoolVarP(&flags.quiet, "quiet", "q", false, "show failures and counts only")
	flags.out.register(command)
	flags.color.register(command)
	complete := cobra.FixedCompletions(rdmacore.Providers(), cobra.ShellCompDirectiveNoFileComp)
	if err := command.RegisterFlagCompletionFunc("provider", complete); err != nil {
		panic(err) // the flag was defined some lines above
	}
	return command
}

func runScenarios(ctx context.Context, a *app, flags *runFlags, args []string) (err error) {
	config, err := flags.config(a)
	if err != nil {
		return err
	}
	checked, err := a.checkScenarios(args, &flags.params, flags.color.style(a, a.stderr))
	if err != nil {
		return err
	}
	cases, err := a.selectCases(checked, config.Selection, flags.allowEmpty)
	if err != nil || len(cases) == 0 {
		return err
	}
	if err := missingParams(checked.Scenarios, cases); err != nil {
		return err
	}
	if flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, flags.timeout, fmt.Errorf("the run took longer than --timeout %s", flags.timeout))
		defer cancel()
	}
	closeProvider, err := flags.openProvider(&config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeProvider()) }()
	outputs, err := flags.out.open(a)
	if err != nil {
		return err
	}
	human := report.NewHuman(outputs.human, report.HumanOptions{
		Style: flags.color.style(a, outputs.human), Width: terminalWidth(outputs.human), Quiet: flags.quiet, Steps: flags.verbose,
	})
	config.Consumers = append([]record.Consumer{human}, outputs.consumers()...)
	config.Environment = a.environment()
	if last := beginLastRun(a, cases); last != nil {
		config.Consumers = append(config.Consumers, last)
	}
	totals, err := scenario.Run(ctx, checked.Scenarios, config)
	if err := outputs.finish(totals, err); err != nil {
		return err
	}
	return reported(runCode(totals))
}

// config checks the flags and makes of them what the runner wants.
func (f *runFlags) config(a *app) (scenario.RunConfig, error) {
	config := scenario.RunConfig{
		ProviderName: f.provider, Jobs: f.jobs, Retries: f.retries, FailFast: f.failFast, Strict: f.strict,
		Seed: f.seed.value, Rerun: f.rerun(), GuestCache: a.env[host.CacheVariable],
	}
	var err error
	if config.Selection, err = f.selection.selection(a); err != nil {
		return config, err
	}
	repeat, badRepeat := strconv.Atoi(f.repeat)
	switch {
	case f.repeat == "until-fail":
		config.UntilFail = true
	case badRepeat != nil || repeat < 1:
		return config, usageError("--repeat %s: neither a number from 1 nor until-fail", f.repeat)
	default:
		config.Repeat = repeat
	}
	switch {
	case f.jobs < 1:
		return config, usageError("--jobs %d: at least 1", f.jobs)
	case f.retries < 0:
		return config, usageError("--retries %d: at least 0", f.retries)
	case f.jobs > 1 && f.provider != softProvider:
		return config, withHint(usageError("--jobs %d: only provider soft runs several cases at once", f.jobs),
			"cases on a device would disturb each other; leave --jobs out")
	case f.seed.value != nil && f.provider != softProvider:
		return config, usageError("--seed: only provider soft draws its numbers from a seed")
	}
	return config, nil
}

// softProvider is the embedded provider, of which each case has its own.
const softProvider = "soft"

// openProvider opens a device's provider for the whole run; soft is opened for each case, so that none sees
// what another has left and several run at once.
func (f *runFlags) openProvider(config *scenario.RunConfig) (closing func() error, err error) {
	if f.provider == softProvider {
		config.Open = scenario.OpenSoft
		return func() error { return nil }, nil
	}
	config.Provider, err = rdmacore.Open(f.provider)
	if err != nil {
		return nil, withExit(exitEnvironment, err)
	}
	return config.Provider.Close, nil
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
	case t.Thresholds > 0:
		return exitThreshold
	}
	return exitOK
}

// rerun is the command line less its files, for the last line of a failure.
func (f *runFlags) rerun() string {
	words := []string{"rdmarun", "run"}
	if f.provider != "soft" {
		words = append(words, "-P", f.provider)
	}
	for _, param := range f.params.given {
		words = append(words, "-p", run.ShellWord(param))
	}
	if f.params.file != "" {
		words = append(words, "--params", run.ShellWord(f.params.file))
	}
	if f.seed.value != nil {
		words = append(words, "--seed", f.seed.String())
	}
	return strings.Join(words, " ")
}
