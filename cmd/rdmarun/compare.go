package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/compare"
	"rdmarun/host/output/terminal"
)

const compareLong = `Compare two runs: baselines that "rdmarun run --save-baseline NAME" has kept, or files of
records made by "rdmarun run --out jsonl=FILE".  A name means the baseline; a file of
that name is ./NAME.

The comparison shows cases and metrics that only one run has, cases with another result,
parameters that differ, and what became faster or slower. With at least 4 samples in
each run, it also tests whether a difference is more than chance: run with --repeat 10.
The test is that of Mann and Whitney. Fewer than one in twenty of the differences that
it finds are chance, for any number of metrics (Benjamini and Hochberg).

Exit code 6 when a case that passed no longer passes, or something became slower. With
--strict also when a run was interrupted, or the runs do not have the same cases,
metrics and parameters.`

func newCompareCommand(a *app) *cobra.Command {
	format := newFormatFlag("text", "json")
	var all, strict bool
	command := &cobra.Command{
		Use:   "compare BEFORE AFTER",
		Short: "Compare two runs",
		Long:  compareLong,
		Example: "  rdmarun run --repeat 10 --out jsonl=after.jsonl\n  rdmarun compare before.jsonl after.jsonl\n" +
			"  rdmarun compare main after.jsonl",
		Args: cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.compare(args[0], args[1], format.value, all, strict)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return baselineNames(), cobra.ShellCompDirectiveDefault
		},
	}
	command.Flags().BoolVarP(&all, "all", "a", false, "show metrics that did not change, too")
	command.Flags().BoolVar(
		&strict, "strict", false, "fail unless both runs have the same cases, metrics and parameters (exit code 6)",
	)
	format.register(command)
	return command
}

func (a *app) compare(before, after, format string, all, strict bool) error {
	first, err := a.readRun(before)
	second, errSecond := a.readRun(after)
	if err := errors.Join(err, errSecond); err != nil {
		return err // both, where neither is there
	}
	result := compare.Compare(first, second)
	show := func() error { return a.showComparison(a.stdout, result, all) }
	if format == "json" {
		show = func() error { return printJSON(a.stdout, result) }
	}
	if err := show(); err != nil {
		return fmt.Errorf("write the comparison: %w", err)
	}
	if result.Worse() || strict && !result.Comparable() {
		return reported(exitThreshold)
	}
	return nil
}

// warnDifferent warns of facts that may also explain a difference.
func (a *app) warnDifferent(result *compare.Result) {
	var names []string
	for _, fact := range result.Different {
		if fact.Matters && !slices.Contains(names, fact.Name) {
			names = append(names, fact.Name)
		}
	}
	if len(names) > 0 {
		a.warn("the runs differ in " + strings.Join(names, ", ") + ", and what is better or worse may come of that")
	}
}

func (a *app) showComparison(out io.Writer, result *compare.Result, all bool) error {
	table := newTable(out)
	for _, fact := range result.Different {
		name := fact.Name
		if fact.Case != "" {
			name = fact.Case + ": " + name
		}
		fmt.Fprintf(table, "differs\t%s\t%s\t->\t%s\n", name, orNone(fact.Before), orNone(fact.After))
	}
	for _, id := range result.Vanished {
		fmt.Fprintf(table, "vanished\t%s\n", id)
	}
	for _, id := range result.Appeared {
		fmt.Fprintf(table, "appeared\t%s\n", id)
	}
	for _, change := range result.Changed {
		fmt.Fprintf(table, "changed\t%s\t%s\t->\t%s\n", change.Case, change.Before, change.After)
	}
	for _, change := range result.Pairs {
		figures := ""
		if then, now := change.Figures[0], change.Figures[1]; then > 0 && now > 0 {
			figures = fmt.Sprintf("\t%s -> %s", amount(then, change.Unit), amount(now, change.Unit))
		}
		fmt.Fprintf(
			table, "pair\t%s: %s\t%s\t->\t%s%s\n", change.Case, change.Pair, change.Before, change.After, figures,
		)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, name := range result.Incomplete {
		a.warn(name + ": the run was cut short, so cases and metrics may be missing")
	}
	a.warnDifferent(result)
	counts := make(map[string]int)
	table = newTable(out)
	for i := range result.Rows {
		row := &result.Rows[i]
		counts[row.Result]++
		if (row.Result == "same" || row.OfPair && row.Result != "better" && row.Result != "worse") && !all {
			continue // a mesh has thousands of pairs; those that became bad are above
		}
		change, was, is := row.Result, amount(row.Before, row.Unit), amount(row.After, row.Unit)
		switch change {
		case "unknown":
			change = "?"
		case "vanished":
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t->\tno samples\n", change, row.Case, row.Metric, was)
			continue
		case "new":
			fmt.Fprintf(table, "%s\t%s\t%s\tno samples\t->\t%s\n", change, row.Case, row.Metric, is)
			continue
		}
		by := "-" // of nothing there is no percentage
		if row.Before != 0 || row.After == 0 {
			by = fmt.Sprintf("%+.1f%%", 100*row.Change())
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t->\t%s\t%s\tp=%.3f n=%d+%d\n", change, row.Case, row.Metric,
			was, is, by, row.P, row.Samples[0], row.Samples[1])
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if counts["unknown"] > 0 {
		fmt.Fprintf(
			a.stderr, "  hint: what became faster or slower shows in at least %d runs of each: --repeat 10\n",
			compare.Fewest,
		)
	}
	text := fmt.Sprintf("%d better, %d worse, %d same, %d with too few samples",
		counts["better"], counts["worse"], counts["same"], counts["unknown"])
	for _, change := range []string{"vanished", "new"} {
		if counts[change] > 0 {
			text += fmt.Sprintf(", %d %s", counts[change], change)
		}
	}
	if len(result.Vanished) > 0 {
		text += ", " + count(len(result.Vanished), "case") + " vanished"
	}
	if len(result.Appeared) > 0 {
		text += ", " + count(len(result.Appeared), "case") + " appeared"
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

func orNone(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return text
}

// amount prints a value of a metric.
func amount(value float64, unit string) string {
	switch unit {
	case "s":
		return terminal.Duration(time.Duration(value * float64(time.Second)))
	case "bit/s":
		return terminal.BitRate(value)
	}
	return fmt.Sprintf("%.4g%s", value, unit)
}
