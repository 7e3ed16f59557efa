package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/quantity"
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
  rdmarun run --provider verbs -d server=mlx5_0:1 -d client=mlx5_1 scenarios/rping.yaml -v
  rdmarun run -t 'smoke && !slow' -j 4 --retries 1
  rdmarun run --failed
  rdmarun run scenarios/interop/rping-client.yaml -P verbs -p peer=192.0.2.1`

func newRunCommand(a *app) *cobra.Command {
	flags := newRunFlags()
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
	flags.register(a, command)
	groupFlags(command, runGroups)
	return command
}

func runScenarios(ctx context.Context, a *app, flags *runFlags, args []string) error {
	config, err := flags.config(a)
	if err != nil {
		return err
	}
	checked, err := a.checkScenarios(ctx, args, &flags.params, flags.color.style(a, a.stderr))
	if err != nil {
		return err
	}
	return runChecked(ctx, a, flags, config, checked)
}

// runChecked runs scenarios in which nothing is wrong.
func runChecked(ctx context.Context, a *app, flags *runFlags, config scenario.RunConfig, checked *scenario.Checked) (err error) {
	cases, err := a.selectCases(checked, config.Selection, flags.allowEmpty)
	if err != nil || len(cases) == 0 {
		return err
	}
	if flags.dryRun {
		return a.printSelected(cases, checked.Files)
	}
	if err := errors.Join(missingParams(checked.Scenarios, cases), flags.places.check(cases)); err != nil {
		return err
	}
	if flags.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, flags.timeout, fmt.Errorf("the run took longer than --timeout %s", quantity.Time(flags.timeout)))
		defer cancel()
	}
	units, err := flags.reportUnits()
	if err != nil {
		return err
	}
	closeProvider, err := a.openProvider(flags.provider, &config)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeProvider()) }()
	baselines, err := flags.baselines.open(a, cases, &config)
	if err != nil {
		return err
	}
	defer baselines.discard()
	outputs, err := flags.out.open(a)
	if err != nil {
		return err
	}
	shown, progress := a.showProgress(outputs.human, flags.quiet, flags.color.style(a, outputs.human))
	outputs.plan.Human = terminal.HumanOptions{
		Style: flags.color.style(a, outputs.human), Width: terminalWidth(outputs.human), Quiet: flags.quiet,
		Steps: flags.verbose >= showSteps, Places: flags.verbose >= showPlaces, Units: units,
	}
	human := terminal.NewHuman(shown, outputs.plan.Human)
	config.Consumers = append(append(config.Consumers, progress.consumer(), human), outputs.consumers()...)
	closeLog, err := flags.log.open(a, flags.verbose >= showSteps, &config)
	if err != nil {
		progress.end()
		return errors.Join(err, outputs.Close())
	}
	config.Environment = a.environment()
	if !flags.unlisted {
		if last := beginLastRun(a, cases); last != nil {
			config.Consumers = append(config.Consumers, last)
		}
	}
	outputs.plan.Log = flags.log.plan()
	endPlan, err := a.prepareForCrash(outputs, &config)
	if err != nil {
		progress.end()
		return errors.Join(err, outputs.Close())
	}
	defer endPlan()
	totals, err := scenario.Run(ctx, checked.Scenarios, config)
	progress.end()
	if err := outputs.finish(totals, errors.Join(err, closeLog())); err != nil {
		return err
	}
	held, err := baselines.finish(a, outputs.human, totals, flags.quiet)
	if err != nil {
		return err
	}
	return reported(runCode(totals, held))
}

// printSelected is --dry-run: what the run would do, without a look at any device.
func (a *app) printSelected(cases []scenario.Selected, files int) error {
	summaries, err := describeCases(cases, nil)
	if err != nil {
		return err
	}
	if err := printPlan(a.stdout, summaries); err != nil {
		return err
	}
	var limit time.Duration
	for _, each := range cases {
		limit += each.Case.Timeout
	}
	_, err = fmt.Fprintf(a.stdout, "%s, %s: nothing was run; at most %s of time limits\n", count(files, "file"), count(len(cases), "case"), limit)
	return err
}

// runCode is the exit code of a run; its order is that of "rdmarun help exit-codes".  A signal's code is
// codeOf's affair, which knows which one it was.
func runCode(t record.Totals, baselineHeld bool) exitCode {
	switch {
	case t.Bug:
		return exitBug
	case t.Interrupted:
		return exitInterrupted
	case t.TimedOut:
		return exitTimeout
	case t.Errors > 0:
		return exitEnvironment
	case t.Failed > t.ByThreshold:
		return exitFailed
	case t.Failed > 0 || !baselineHeld:
		return exitThreshold
	}
	return exitOK
}
