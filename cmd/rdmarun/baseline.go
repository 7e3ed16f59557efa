package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/compare"
	"rdmarun/host/output/jsonl"
	"rdmarun/host/output/outfile"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
)

// baselineFolder is where baselines are, in the folder of their scenarios: there they can be versioned, and passed on
// between jobs of a CI system.
const baselineFolder = ".rdmarun/baselines"

// baselineName is what a baseline may be called: the name of a file that does not look like a flag.
var baselineName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]*$`)

func baselinePath(name string) string { return filepath.Join(baselineFolder, name+".jsonl") }

// baselineFlags compare a run with an earlier one, and keep it for later ones.
type baselineFlags struct {
	against string
	save    string
}

func (f *baselineFlags) register(command *cobra.Command) {
	set := command.Flags()
	set.StringVar(
		&f.against, "baseline", "",
		"compare the run with an earlier one: a baseline's NAME, or a FILE of records (exit code 6)",
	)
	set.StringVar(
		&f.save, "save-baseline", "", "keep what the run finds as the baseline of that NAME, in "+baselineFolder,
	)
	completeFlag(command, "baseline", completeBaselines)
	completeFlag(command, "save-baseline", completeBaselines)
}

// baselineNames lists what is kept in this folder.
func baselineNames() []string {
	paths, _ := filepath.Glob(baselinePath("*")) // the pattern is right
	for i, path := range paths {
		paths[i] = strings.TrimSuffix(filepath.Base(path), ".jsonl")
	}
	return paths
}

func completeBaselines(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return baselineNames(), cobra.ShellCompDirectiveDefault // files, too
}

// recordsPath is the file of a baseline's name; anything else is a file already.
func recordsPath(name string) string {
	if baselineName.MatchString(name) {
		if _, err := os.Stat(baselinePath(name)); err == nil {
			return baselinePath(name)
		}
	}
	return name
}

// readRun reads the records of a run: a baseline's name, a file, or - for stdin.
func (a *app) readRun(name string) (*compare.Run, error) {
	path := recordsPath(name)
	in, closing, err := a.openRecords(path)
	if errors.Is(err, os.ErrNotExist) && baselineName.MatchString(name) {
		err = withExit(
			exitEnvironment,
			fmt.Errorf("there is no baseline %s in %s, and no file of that name", name, baselineFolder),
		)
		if near := diag.DidYouMean(name, baselineNames()); near != "" {
			return nil, withHint(err, near)
		}
		return nil, withHint(err, "a run with --save-baseline "+name+" makes one")
	}
	if err != nil {
		return nil, err
	}
	defer closing()
	run, err := compare.Read(in, path)
	return run, recordsError(err)
}

// baselines are those of a run: the one it is compared with, and the one it becomes.
type baselines struct {
	flags  *baselineFlags
	before *compare.Run // nil without --baseline
	now    *compare.Run
	file   *outfile.File // nil without --save-baseline
	writer record.Consumer
}

// open reads and begins what the flags name, for the selected cases.
func (f *baselineFlags) open(a *app, cases []scenario.Selected, config *scenario.RunConfig) (*baselines, error) {
	b := &baselines{flags: f, now: compare.NewRun("this run")}
	if f.save != "" && !baselineName.MatchString(f.save) {
		return nil, usageError("--save-baseline %q: a name has letters, digits, dots, dashes and underscores", f.save)
	}
	if f.against != "" {
		before, err := a.readRun(f.against)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(cases, func(c scenario.Selected) bool { return before.Has(c.Case.ID) }) {
			err := withExit(
				exitThreshold,
				fmt.Errorf(
					"--baseline %s: it has none of the cases of this run, so there is nothing to compare", f.against,
				),
			)
			return nil, withHint(
				err,
				"it has "+strings.Join(before.IDs(3), ", ")+"; an id begins with the path as the command line has it",
			)
		}
		b.before = before
		config.Baseline, config.BaselineName = before.Baseline(), f.against
		config.Consumers = append(config.Consumers, b.now)
	}
	if f.save != "" {
		if err := os.MkdirAll(baselineFolder, 0o777); err != nil {
			return nil, withExit(exitEnvironment, fmt.Errorf("keep the baseline: %w", err))
		}
		file, err := outfile.Create(baselinePath(f.save))
		if err != nil {
			return nil, withExit(exitEnvironment, err)
		}
		b.file, b.writer = file, &withoutSteps{jsonl.To(file, baselinePath(f.save))}
		config.Consumers = append(config.Consumers, b.writer)
	}
	return b, nil
}

// withoutSteps leaves out what a comparison does not look at.
type withoutSteps struct{ *jsonl.Writer }

// Wants implements record.Consumer.
func (w *withoutSteps) Wants(kind record.Kind) bool {
	return kind != record.StepEnd && kind != record.Output && kind != record.Before
}

// discard drops the baseline that was begun; the one before stays.
func (b *baselines) discard() {
	if b.file != nil {
		b.file.Discard()
	}
}

// finish keeps the baseline and shows how the run compares; held means that nothing became worse.
func (b *baselines) finish(a *app, human io.Writer, totals record.Totals, quiet bool) (held bool, err error) {
	if err := b.keep(a, totals); err != nil {
		return false, err
	}
	if b.before == nil {
		return true, nil
	}
	b.now.Finish()
	result := compare.Compare(b.before, b.now)
	result.Vanished = nil // not selected, most likely
	held = !result.Worse()
	if quiet && held {
		return true, nil
	}
	verdict := map[bool]string{true: "passed", false: "failed"}[held]
	if _, err := fmt.Fprintf(human, "\nbaseline %s %s\n", b.flags.against, verdict); err != nil {
		return held, fmt.Errorf("write the comparison: %w", err)
	}
	return held, a.showComparison(human, result, false)
}

// keep puts the baseline into its place, if the run is complete: compared with half a run, a run that
// lost cases would look complete.
func (b *baselines) keep(a *app, totals record.Totals) error {
	defer b.discard()
	switch {
	case b.file == nil:
		return nil
	case totals.Interrupted || totals.TimedOut || totals.Bug || totals.NotRun > 0:
		fmt.Fprintf(a.stderr, "rdmarun: the baseline %s is not kept: the run did not come to its end\n", b.flags.save)
		return nil
	case totals.Failed-totals.ByThreshold+totals.Errors > 0:
		fmt.Fprintf(a.stderr, "rdmarun: warning: baseline %s: %s failed, of which it has no times\n",
			b.flags.save, count(totals.Failed-totals.ByThreshold+totals.Errors, "case"))
	}
	return withExit(exitEnvironment, b.file.Commit())
}
