package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"rdmarun/host/output/terminal"
	"rdmarun/host/scenario"
)

// defaultScenarios is where scenarios are when the command line does not say.
const defaultScenarios = "scenarios"

// scenarioPaths are the paths of a command line, or the default where it has none.
func scenarioPaths(args []string) ([]string, error) {
	if len(args) > 0 {
		return args, nil
	}
	if _, err := os.Stat(defaultScenarios); errors.Is(err, fs.ErrNotExist) {
		return nil, withHint(usageError("no scenario is named, and there is no folder ./%s", defaultScenarios),
			"name files or folders, or begin one: rdmarun new my-first")
	}
	return []string{defaultScenarios}, nil
}

// completeScenarios offers YAML files and directories.
func completeScenarios(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"yaml", "yml", packExtension[1:]}, cobra.ShellCompDirectiveFilterFileExt
}

// checkScenarios checks what a command line names and shows what is wrong with it.
func (a *app) checkScenarios(ctx context.Context, args []string, flags *paramFlags, style terminal.Style) (*scenario.Checked, error) {
	params, err := flags.read(a)
	if err != nil {
		return nil, err
	}
	paths, err := scenarioPaths(args)
	if err != nil {
		return nil, err
	}
	locate, err := a.unpackAll(paths)
	if err != nil {
		return nil, err
	}
	checked, err := scenario.CheckIn(ctx, locate, paths, params)
	if err != nil {
		return nil, err
	}
	return checked, a.reportChecked(checked, style)
}

// reportChecked shows what is wrong and returns the error that the command ends with.
func (a *app) reportChecked(checked *scenario.Checked, style terminal.Style) error {
	if n := checked.Errors.Len(); n > 0 {
		if err := checked.Errors.Render(a.stderr, style.Painter()); err != nil {
			return err
		}
		most := map[bool]string{true: "at least "}[checked.Errors.Cut()]
		in := "" // what cannot be read is no file of scenarios
		if checked.Files > 0 {
			in = " in " + count(checked.Files, "file")
		}
		fmt.Fprintf(a.stderr, "\n%s%s%s\n", most, count(n, "error"), in)
		return reported(exitInvalid)
	}
	if err := a.paramErrors(checked.ParamErrors); err != nil {
		return err
	}
	if n := checked.Errors.Warnings(); n > 0 {
		if err := checked.Errors.Render(a.stderr, style.Painter()); err != nil {
			return err
		}
		fmt.Fprintf(a.stderr, "\n%s in %s\n", count(n, "warning"), count(checked.Files, "file"))
	}
	if checked.Files == 0 {
		return withHint(withExit(exitNothing, errors.New("there is no scenario here")),
			"a scenario is a .yaml file with the line \"rdmarun: v1\"")
	}
	return nil
}

// selectCases applies a selection.  An empty one is a mistake that looks like a success, so it is an error
// unless it was asked for.
func (a *app) selectCases(checked *scenario.Checked, selection scenario.Selection, allowEmpty bool) ([]scenario.Selected, error) {
	cases, err := scenario.Select(checked.Scenarios, selection)
	if err != nil {
		return nil, err
	}
	if len(cases) > 0 {
		return cases, nil
	}
	total := 0
	for _, s := range checked.Scenarios {
		total += len(s.Program.Cases)
	}
	message := fmt.Sprintf("nothing is selected: of %s in %s none is meant", count(total, "case"), count(checked.Files, "file"))
	if total == 0 {
		message = fmt.Sprintf("nothing is selected: %s, and no case in it", count(checked.Files, "file"))
	}
	if selection.Only != nil {
		message += " (with --failed: what failed or did not run last time)"
	}
	if allowEmpty {
		_, err := fmt.Fprintln(a.stderr, message)
		return nil, err
	}
	return nil, withHint(withExit(exitNothing, errors.New(message)), "\"rdmarun list\" shows what there is; --allow-empty lets this pass")
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
