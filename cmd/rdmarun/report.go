package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/output"
	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
)

const reportLong = `Make reports of the records of a run.

FILE is what "rdmarun run --out jsonl=FILE" has written; - is stdin.  The reports are
the same that the run itself would have written.  The records of a run that was
killed will do: cases that never ended are errors in the reports.`

func newReportCommand(a *app) *cobra.Command {
	var targets []string
	command := &cobra.Command{
		Use:     "report FILE --to FORMAT=FILE,...",
		Short:   "Make reports of the records of a run",
		Long:    reportLong,
		Example: "  rdmarun report run.jsonl --to html=report.html,junit=junit.xml\n  rdmarun report run.jsonl --to tap=-",
		Args:    cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.report(args[0], targets)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	command.Flags().StringSliceVar(&targets, "to", nil, "what to make: FORMAT=FILE,... (formats: "+strings.Join(formatNames(), ", ")+")")
	completeFlag(command, "to", completeFormats)
	return command
}

func (a *app) report(name string, to []string) error {
	targets, err := parseTargets("--to", to)
	if err != nil {
		return err
	}
	if len(targets) == 0 {
		return withHint(usageError("--to is missing: which report?"), "for example: --to html=report.html")
	}
	if err := differs(name, targets); err != nil {
		return err
	}
	in, closing, err := a.openRecords(name)
	if err != nil {
		return err
	}
	defer closing()
	outputs, err := openReports(targets, a.stdout)
	if err != nil {
		return err
	}
	consumers := outputs.Consumers()
	torn, err := jsonl.Read(in, name, func(r *record.Record) error {
		for _, each := range consumers {
			if !each.Wants(r.Kind) {
				continue
			}
			if err := each.Record(r); err != nil {
				return withExit(exitEnvironment, err)
			}
		}
		return nil
	})
	if err != nil {
		outputs.Discard()
		return err
	}
	if torn {
		fmt.Fprintf(a.stderr, "rdmarun: %s ends within a record, which is left out: the run was killed\n", name)
	}
	return withExit(exitEnvironment, outputs.Close())
}

// openRecords opens a file of records, or stdin.
func (a *app) openRecords(name string) (in io.Reader, closing func(), err error) {
	if name == "-" {
		return a.stdin, func() {}, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, nil, withExit(exitEnvironment, fmt.Errorf("read the records: %w", err))
	}
	return file, func() { _ = file.Close() }, nil
}

// differs refuses to write a report over the records it is made of.
func differs(name string, targets []output.Target) error {
	source, err := os.Stat(name)
	if err != nil {
		return nil // opening it will say why
	}
	for _, target := range targets {
		if info, err := os.Stat(target.Path); err == nil && os.SameFile(source, info) {
			return usageError("--to %s=%s would overwrite the records it is made of", target.Format, target.Path)
		}
	}
	return nil
}
