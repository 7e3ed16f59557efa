package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/output"
	"rdmarun/host/output/github"
	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
	"rdmarun/host/scenario/shell"
)

const reportLong = `Make reports of the records of a run.

FILE is what "rdmarun run --out jsonl=FILE" has written; - is stdin.  The reports are
the same that the run itself would have written.  The records of a run that was
killed will do: cases that never ended are errors in the reports.`

func newReportCommand(a *app) *cobra.Command {
	var targets []string
	command := &cobra.Command{
		Use:   "report FILE --to FORMAT=FILE,...",
		Short: "Make reports of the records of a run",
		Long:  reportLong,
		Example: "  rdmarun report run.jsonl --to html=report.html,junit=junit.xml\n" +
			"  rdmarun report run.jsonl --to tap=-",
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.report(args[0], targets)
		},
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return []string{"jsonl"}, cobra.ShellCompDirectiveFilterFileExt
		},
	}
	command.Flags().StringSliceVar(
		&targets, "to", nil, "what to make: FORMAT=FILE,... (formats: "+strings.Join(formatNames(), ", ")+")",
	)
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
		return recordsError(err)
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

// recordsError gives an error of reading records its exit code, and the remedy: how to get a file of records.
func recordsError(err error) error {
	var format *jsonl.FormatError
	if errors.As(err, &format) {
		return withHint(withExit(exitInvalid, err), "make the records with: rdmarun run --out jsonl=FILE")
	}
	return withExit(exitEnvironment, err)
}

// differs refuses to write a report over the records that it is made from.
func differs(name string, targets []output.Target) error {
	source, err := os.Stat(name)
	if err != nil {
		return nil // opening it will report the reason
	}
	for _, target := range targets {
		if info, err := os.Stat(target.Path); err == nil && os.SameFile(source, info) {
			return usageError("--to %s=%s would overwrite the records it is made of", target.Format, target.Path)
		}
	}
	return nil
}

// outFlags select the reports of a run.
type outFlags struct {
	targets   []string
	directory string
}

func (f *outFlags) register(command *cobra.Command) {
	command.Flags().StringArrayVarP(&f.targets, "out", "o", nil,
		"write a report: FORMAT=FILE, - is stdout (repeatable, formats: "+strings.Join(formatNames(), ", ")+")")
	command.Flags().StringVar(&f.directory, "out-dir", "",
		"write records, JUnit and HTML to a new folder below this one, linked as \"latest\"")
	completeFlag(command, "out", completeFormats)
}

func formatNames() []string {
	var names []string
	for _, format := range output.Formats() {
		names = append(names, format.Name)
	}
	return names
}

// completeFormats offers the formats of -o; the shell completes the file after "=".
func completeFormats(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var list []string
	for _, format := range output.Formats() {
		list = append(list, format.Name+"=\t"+format.What)
	}
	return list, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// parseTargets reads FORMAT=FILE.
func parseTargets(flag string, texts []string) ([]output.Target, error) {
	var targets []output.Target
	for _, text := range texts {
		if format, _, found := strings.Cut(text, "="); found {
			if err := oneOf(format, formatNames()); err != nil {
				return nil, usageError("%s: %w", flag, err)
			}
		}
		target, err := output.ParseTarget(text)
		if err != nil {
			return nil, usageError("%s: %w", flag, err)
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// runOutputs are the files of a run.
type runOutputs struct {
	*output.Outputs
	// human is where the text for people goes: no report goes there.
	human io.Writer
	extra []record.Consumer
	link  func() error
	// plan is what the process that follows a crash needs of them.
	plan crashPlan
}

// open begins the reports.
func (f *outFlags) open(a *app) (*runOutputs, error) {
	targets, err := parseTargets("--out", f.targets)
	if err != nil {
		return nil, err
	}
	opened := &runOutputs{human: a.stdout, link: func() error { return nil }}
	if f.directory != "" {
		folder, err := makeRunFolder(f.directory)
		if err != nil {
			return nil, withExit(exitEnvironment, fmt.Errorf("--out-dir: %w", err))
		}
		for _, each := range []output.Target{
			{Format: "jsonl", Path: "records.jsonl"}, {Format: "junit", Path: "junit.xml"},
			{Format: "html", Path: "report.html"},
		} {
			targets = append(targets, output.Target{Format: each.Format, Path: filepath.Join(folder, each.Path)})
		}
		opened.link = func() error { return linkLatest(folder) }
		opened.plan.Folder = folder
	}
	opened.plan.Targets = targets
	if slices.ContainsFunc(targets, func(t output.Target) bool { return t.Path == "-" }) {
		opened.human, opened.plan.ToStderr = a.stderr, true
	}
	if a.env["GITHUB_ACTIONS"] == "true" {
		opened.extra = append(opened.extra, github.New(opened.human))
		opened.plan.GitHub = true
	}
	opened.Outputs, err = openReports(targets, a.stdout)
	return opened, err
}

// openReports begins reports, all or none.  A path that cannot be written is reported before any report is touched.
func openReports(targets []output.Target, stdout io.Writer) (*output.Outputs, error) {
	for _, target := range targets {
		folder := filepath.Dir(target.Path)
		info, err := os.Stat(folder)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			err = fmt.Errorf("write the report %s: there is no folder %s", target.Path, folder)
			return nil, withHint(withExit(exitEnvironment, err), "mkdir -p "+shell.Word(folder))
		case err != nil:
			return nil, withExit(exitEnvironment, fmt.Errorf("write the report %s: %w", target.Path, err))
		case !info.IsDir():
			return nil, withExit(
				exitEnvironment, fmt.Errorf("write the report %s: %s is not a folder", target.Path, folder),
			)
		}
	}
	outputs, err := output.OpenAll(targets, stdout)
	return outputs, withExit(exitEnvironment, err)
}

func (o *runOutputs) consumers() []record.Consumer { return append(o.extra, o.Consumers()...) }

// madeAnew are the consumers of those reports that are made again after a crash; records are only continued.
func (o *runOutputs) madeAnew() []record.Consumer {
	var list []record.Consumer
	for i, each := range o.Consumers() {
		if o.plan.Targets[i].Format != "jsonl" {
			list = append(list, each)
		}
	}
	return list
}

// finish completes the reports.  A report that could not be written is a failure of the environment, and fails a run
// even if all of its cases passed.
func (o *runOutputs) finish(totals record.Totals, failure error) error {
	err := errors.Join(failure, o.Close(), o.link())
	switch {
	case err == nil:
		return nil
	case totals.Bug:
		return withExit(exitBug, err)
	}
	return withHint(withExit(exitEnvironment, err), "the reports are not complete")
}

// makeRunFolder makes the folder of one run, which was not there before: neither another run's, nor one that another
// user has put there.
func makeRunFolder(directory string) (folder string, err error) {
	if err := os.MkdirAll(directory, 0o777); err != nil {
		return "", err
	}
	for range 100 {
		folder = filepath.Join(directory, time.Now().Format("20060102-150405.000"))
		if err = os.Mkdir(folder, 0o777); !errors.Is(err, fs.ErrExist) {
			break
		}
		time.Sleep(time.Millisecond) // until the next name
	}
	return folder, err
}

// linkLatest makes a link "latest" to a folder, next to it.
func linkLatest(folder string) error {
	link := filepath.Join(filepath.Dir(folder), "latest")
	temporary := folder + ".link"
	if err := os.Symlink(filepath.Base(folder), temporary); err != nil {
		return fmt.Errorf("link %s: %w", link, err)
	}
	if err := os.Rename(temporary, link); err != nil {
		return errors.Join(fmt.Errorf("link %s: %w", link, err), os.Remove(temporary))
	}
	return nil
}
