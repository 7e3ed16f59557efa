package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
)

const validateLong = `Check scenarios without running them: files, and all scenarios below directories
(default: ./scenarios).  All errors of all files are shown, each with its place, the
line, and what to do about it.  No device is touched and no socket opened.

With --plan it also shows what would run: every case with its parameters, tags,
time limit, number of steps and what it needs.

--format json is for scripts, --format github for annotations of a pull request.

Exit code 3 when something is wrong.`

func newValidateCommand(a *app) *cobra.Command {
	var params paramFlags
	withPlan := false
	color, format := newColorFlag(), newFormatFlag("text", "json", "github")
	command := &cobra.Command{
		Use:   "validate [FILE|DIRECTORY...]",
		Short: "Check scenarios without running them",
		Long:  validateLong,
		Example: "  rdmarun validate scenarios\n  rdmarun validate my.yaml -p size=4KiB --plan\n" +
			"  rdmarun validate --format json | jq '.errors[].message'",
		RunE: func(command *cobra.Command, args []string) error {
			return a.validate(command.Context(), args, &params, color, format.value, withPlan)
		},
		ValidArgsFunction: completeScenarios,
	}
	params.register(a, command)
	command.Flags().BoolVar(&withPlan, "plan", false, "show what would run")
	format.register(command)
	color.register(command)
	return command
}

func (a *app) validate(ctx context.Context, args []string, params *paramFlags, color *choiceFlag, format string, withPlan bool) error {
	if format != "text" {
		return a.validateForMachines(ctx, args, params, format, withPlan)
	}
	checked, err := a.checkScenarios(ctx, args, params, color.style(a, a.stderr))
	if err != nil {
		return err
	}
	cases, err := scenario.Select(checked.Scenarios, scenario.Selection{})
	if err != nil {
		return err
	}
	if withPlan {
		summaries, err := describeCases(cases, nil)
		if err != nil {
			return err
		}
		if err := printPlan(a.stdout, summaries); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.stdout, "%s, %s: no errors\n", count(checked.Files, "file"), count(len(cases), "case"))
	return err
}

// validateForMachines prints everything, also what is wrong, on standard output.
func (a *app) validateForMachines(ctx context.Context, args []string, flags *paramFlags, format string, withPlan bool) error {
	params, err := flags.read(a)
	if err != nil {
		return err
	}
	paths, err := scenarioPaths(args)
	if err != nil {
		return err
	}
	locate, err := a.unpackAll(paths)
	if err != nil {
		return err
	}
	checked, err := scenario.CheckIn(ctx, locate, paths, params)
	if err != nil {
		return err
	}
	if err := a.paramErrors(checked.ParamErrors); err != nil {
		return err
	}
	result := newValidation(checked, withPlan)
	if format == "github" {
		err = result.printAnnotations(a.stdout)
	} else {
		err = printJSON(a.stdout, result)
	}
	if err != nil {
		return err
	}
	switch {
	case checked.Errors.Len() > 0:
		return reported(exitInvalid)
	case checked.Files == 0:
		return reported(exitNothing)
	}
	return nil
}
