package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/rdmacore"
)

const listLong = `List the cases of scenarios (default: those below ./scenarios), one row each: the id
that --id takes, the tags that --tags takes, what the case needs, and why a run with
these parameters would skip it.  Use it to see what a selection means before a run:
list and run take the same flags.`

const listExample = `  rdmarun list
  rdmarun list -t 'smoke && !slow'
  rdmarun list --format json | jq -r '.cases[].id'`

// listVersion is raised when a field of the JSON changes its meaning or goes away.
const listVersion = 1

// caseList is what `list --format json` prints.
type caseList struct {
	Version int           `json:"version"`
	Cases   []caseSummary `json:"cases"`
}

func newListCommand(a *app) *cobra.Command {
	var params paramFlags
	var selection selectionFlags
	providerName := ""
	allowEmpty := false
	color, format := newColorFlag(), newFormatFlag("table", "json")
	command := &cobra.Command{
		Use:     "list [FILE|DIRECTORY...]",
		Short:   "List cases, their tags and what they need",
		Long:    listLong,
		Example: listExample,
		RunE: func(command *cobra.Command, args []string) error {
			chosen, err := selection.selection(a)
			if err != nil {
				return err
			}
			if providerName, err = a.resolveProvider(providerName); err != nil {
				return err
			}
			checked, err := a.checkScenarios(command.Context(), args, &params, color.style(a, a.stderr))
			if err != nil {
				return err
			}
			cases, err := a.selectCases(checked, chosen, allowEmpty)
			if err != nil {
				return err
			}
			provider, err := rdmacore.Open(providerName)
			if err != nil {
				return withExit(exitEnvironment, err)
			}
			summaries, err := describeCases(cases, provider)
			if err = errors.Join(err, provider.Close()); err != nil {
				return withExit(exitEnvironment, err)
			}
			return printCases(a.stdout, summaries, format.value)
		},
		ValidArgsFunction: completeScenarios,
	}
	params.register(a, command)
	selection.register(a, command)
	registerProvider(command, &providerName, softProvider, "provider whose skips are shown (soft, verbs, auto)", autoProvider)
	command.Flags().BoolVar(&allowEmpty, "allow-empty", false, "an empty selection is no failure (otherwise exit code 5)")
	format.register(command)
	color.register(command)
	return command
}

func printCases(w io.Writer, summaries []caseSummary, format string) error {
	if format == "json" {
		return printJSON(w, caseList{Version: listVersion, Cases: summaries})
	}
	if len(summaries) == 0 {
		return nil
	}
	table := newTable(w)
	fmt.Fprintln(table, "CASE\tTAGS\tNEEDS\tSKIP")
	for _, c := range summaries {
		// The tabwriter holds everything back; its Flush reports what a write here would.
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", c.ID, orDash(strings.Join(c.Tags, ",")), orDash(strings.Join(c.Requires, ",")), orDash(c.Skip))
	}
	return table.Flush()
}

func sortedNames[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
