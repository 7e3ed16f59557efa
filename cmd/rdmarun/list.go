package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

const listLong = `List the cases of scenarios (default: those below ./scenarios), one
row each. A row has the id for --id, the tags for --tags, and the requirements of the
case. It also shows why a run with these parameters would skip it. Use it to check a
selection before a run: list and run have the same flags.`

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
			if args, err = selection.paths(a, args); err != nil {
				return err
			}
			checked, err := a.checkScenarios(command.Context(), args, &params, color.style(a, a.stderr))
			if err != nil {
				return err
			}
			cases, err := a.selectCases(checked, &chosen, allowEmpty)
			if err != nil {
				return err
			}
			skips, err := skipReasons(cases, providerName, command.Flags().Changed("provider"))
			if err != nil {
				return withExit(exitEnvironment, err)
			}
			return printCases(a.stdout, describeCases(cases, skips), format.value)
		},
		ValidArgsFunction: completeScenarios,
	}
	params.register(a, command)
	selection.register(a, command)
	registerProvider(
		command, &providerName, rdmacore.Soft, "provider to show skips for (soft, verbs, auto)", autoProvider,
	)
	command.Flags().BoolVar(
		&allowEmpty, "allow-empty", false, "an empty selection is not a failure (otherwise exit code 5)",
	)
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
		fmt.Fprintf(
			table, "%s\t%s\t%s\t%s\n", record.CaseTitle(c.ID, c.File, c.Name),
			orDash(strings.Join(c.Tags, ",")), orDash(strings.Join(c.Requires, ",")),
			orDash(c.Skip),
		)
	}
	return table.Flush()
}

func sortedNames[K ~string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// caseSummary is one case as list and `validate --plan` show it; scripts read its JSON, so names stay.
type caseSummary struct {
	ID       string            `json:"id"`
	File     string            `json:"file"`
	Name     string            `json:"name"`
	Doc      string            `json:"doc,omitempty"`
	Tags     []string          `json:"tags"`
	Params   map[string]string `json:"params,omitempty"`
	Requires []string          `json:"requires"`
	Fixtures []string          `json:"fixtures,omitempty"` // in the order of their setup
	Skip     string            `json:"skip,omitempty"`     // why a run would leave it out
	XFail    bool              `json:"xfail,omitempty"`    // it is expected to fail, at least somewhere
	Roles    []string          `json:"roles"`
	Steps    int               `json:"steps"`                // at least
	More     bool              `json:"more_steps,omitempty"` // only a run knows how many there are
	Timeout  string            `json:"timeout"`
}

// skipReasons are why a run on a provider would skip each of the cases.
func skipReasons(cases []scenario.Selected, providerName string, chosen bool) (reasons []string, err error) {
	config := scenario.RunConfig{ProviderName: providerName, FilesChoose: !chosen}
	if providerName != rdmacore.Soft {
		if config.Provider, err = rdmacore.Open(providerName); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, config.Provider.Close()) }()
	}
	return scenario.SkipReasons(cases, config)
}

// describeCases describes cases; skips are why a run would skip each, nil without a look at any provider.
func describeCases(cases []scenario.Selected, skips []string) []caseSummary {
	summaries, steps := make([]caseSummary, len(cases)), scenario.StepCounts(cases)
	for i, each := range cases {
		compiled := each.Scenario.Compiled
		skip := ""
		if len(compiled.Missing) > 0 {
			skip = scenario.MissingReason(compiled.Missing)
		} else if skips != nil {
			skip = skips[i]
		}
		summary := caseSummary{
			ID: each.Case.ID, File: each.Scenario.Path, Name: each.Case.Name, Doc: strings.TrimSpace(compiled.Doc),
			Tags: append([]string{}, each.Case.Tags...), Requires: []string{}, Skip: skip,
			Roles: []string{}, XFail: each.Case.XFail != nil, Steps: steps[i].Least, More: !steps[i].Exact,
			Timeout: each.Case.Timeout.String(),
		}
		for _, p := range each.Case.Constants {
			if summary.Params == nil {
				summary.Params = make(map[string]string)
			}
			summary.Params[p.Name] = p.Text
		}
		for _, fixture := range each.Case.Fixtures {
			summary.Fixtures = append(summary.Fixtures, fixture.Name)
		}
		summary.Requires = append(summary.Requires, each.Requirements()...)
		summary.Roles = append(summary.Roles, roleNames(each.Case.Roles)...)
		summaries[i] = summary
	}
	return summaries
}

// roleNames are the roles as the file has them, the counted ones with their first and last instance.
func roleNames(roles []testbed.RoleConfig) []string {
	var list []string
	for i, role := range roles {
		last := i+1 == len(roles) || roles[i+1].Group != role.Group
		switch {
		case role.Group == "" || role.Index == 0:
			list = append(list, role.Name)
		case last:
			list[len(list)-1] = fmt.Sprintf("%s[0..%d]", role.Group, role.Index)
		}
	}
	return list
}

// line is the case in one line, for --plan.
func (c caseSummary) line() string {
	steps := count(c.Steps, "step")
	if c.More {
		steps = "at least " + steps
	}
	parts := []string{steps, "timeout " + c.Timeout}
	if len(c.Roles) > 0 {
		parts = append(parts, "roles "+strings.Join(c.Roles, ", "))
	}
	if len(c.Fixtures) > 0 {
		parts = append(parts, "fixtures "+strings.Join(c.Fixtures, ", "))
	}
	if len(c.Tags) > 0 {
		parts = append(parts, "tags "+strings.Join(c.Tags, ", "))
	}
	if len(c.Requires) > 0 {
		parts = append(parts, "needs "+strings.Join(c.Requires, ", "))
	}
	if c.Skip != "" {
		parts = append(parts, "would be skipped: "+c.Skip)
	}
	return strings.Join(parts, "; ")
}

// printPlan writes what would run, two lines for each case and one for its parameters.
func printPlan(out io.Writer, cases []caseSummary) error {
	w := printable.NewWriter(out)
	for _, c := range cases {
		if _, err := fmt.Fprintf(w, "%s\n  %s\n", record.CaseTitle(c.ID, c.File, c.Name), c.line()); err != nil {
			return err
		}
		var params []string
		for _, name := range sortedNames(c.Params) {
			params = append(params, name+"="+c.Params[name])
		}
		if params != nil {
			if _, err := fmt.Fprintf(w, "  params %s\n", strings.Join(params, " ")); err != nil {
				return err
			}
		}
	}
	if len(cases) > 0 {
		_, err := fmt.Fprintln(w)
		return err
	}
	return nil
}
