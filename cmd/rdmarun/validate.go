package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/report"
)

const validateLong = `Check scenarios without running them: files, and all scenarios below directories
(default: ./scenarios).  All errors of all files are shown, each with its place, the
line, and what to do about it.  No device is touched and no socket opened.

Exit code 3 when something is wrong.`

func newValidateCommand(a *app) *cobra.Command {
	var params []string
	color := newColorFlag()
	command := &cobra.Command{
		Use:     "validate [FILE|DIRECTORY...]",
		Short:   "Check scenarios without running them",
		Long:    validateLong,
		Example: "  rdmarun validate scenarios\n  rdmarun validate my.yaml -p size=4KiB",
		RunE: func(_ *cobra.Command, args []string) error {
			return a.validate(args, params, color)
		},
		ValidArgsFunction: completeScenarios,
	}
	command.Flags().StringArrayVarP(&params, "param", "p", nil, "set a parameter: NAME=VALUE (repeatable)")
	color.register(command)
	return command
}

func (a *app) validate(paths, flags []string, color *choiceFlag) error {
	params, err := parseParams(a.env, flags)
	if err != nil {
		return err
	}
	if len(paths) == 0 {
		paths = []string{defaultScenarios}
	}
	checked := scenario.Check(paths, params)
	if err := a.reportChecked(checked, color.style(a, a.stderr)); err != nil {
		return err
	}
	cases := 0
	for _, s := range checked.Scenarios {
		cases += len(s.Program.Cases)
	}
	_, err = fmt.Fprintf(a.stdout, "%s, %s: no errors\n", count(checked.Files, "file"), count(cases, "case"))
	return err
}

// reportChecked shows what is wrong and returns the error that the command ends with.
func (a *app) reportChecked(checked *scenario.Checked, style report.Style) error {
	if n := checked.Errors.Len(); n > 0 {
		if err := checked.Errors.Render(a.stderr, style.Painter()); err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "\n%s in %s\n", count(n, "error"), count(checked.Files, "file"))
		return reported(exitInvalid)
	}
	if err := a.paramErrors(checked.ParamErrors); err != nil {
		return err
	}
	if checked.Files == 0 {
		return withHint(withExit(exitNothing, fmt.Errorf("there is no scenario here")),
			"a scenario is a .yaml file with the line \"rdmarun: v1\"")
	}
	return nil
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
