package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"rdmarun/host/output"
	"rdmarun/host/output/cases"
	"rdmarun/host/output/github"
	"rdmarun/host/output/jsonl"
	show "rdmarun/host/output/terminal"
	"rdmarun/host/ownfile"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/rdmacore/process"
)

// crashPlan is what the process that follows a crash of native code needs to close what the run has begun.
type crashPlan struct {
	// Descriptor is that of the records until the crash, a file without a name.
	Descriptor int             `json:"descriptor"`
	Targets    []output.Target `json:"targets,omitempty"`
	// Streams are the descriptors of targets that are not files, such as pipes, by their path. Their reader gets
	// the rest, and no end of file before it.
	Streams map[string]int `json:"streams,omitempty"`
	// ToStderr selects where the text for people goes.
	ToStderr bool              `json:"to_stderr,omitempty"`
	Human    show.HumanOptions `json:"human"`
	GitHub   bool              `json:"github,omitempty"`
	Log      *logPlan          `json:"log,omitempty"`
	// Folder is that of --out-dir, which "latest" is to lead to.
	Folder string `json:"folder,omitempty"`
}

type logPlan struct {
	File   string `json:"file"`
	Format string `json:"format"`
}

// catchNativeCrashes makes the process report crashes of native code and close its reports.  It does nothing in the
// process that follows a crash, which would start the next one without an end.
func (a *app) catchNativeCrashes() {
	if len(a.args) > 0 && a.args[0] == crashedCommand {
		return
	}
	if err := process.CatchCrashes(crashedCommand); err != nil {
		a.warn(err.Error())
		return
	}
	a.planForCrash, a.noPlanForCrash = process.Plan, process.NoPlan
}

// recordsForCrash stores the records of a run where the process that follows a crash finds them. It stores only what
// the repeated reports need. Records that the user requested are continued.
type recordsForCrash struct {
	file   *os.File
	writer *jsonl.Writer
	others []record.Consumer
	kept   atomic.Int64
	broken bool
}

// maxForCrash bounds what is kept for the reports of a run of any length; its cases are counted all the same.
const maxForCrash = 256 << 20

// prepareForCrash begins to keep the records of a run.  It comes after all other consumers, so that these have what
// it has.  The caller calls end when the reports are closed.
func (a *app) prepareForCrash(outputs *runOutputs, config *scenario.RunConfig) (end func(), err error) {
	if a.planForCrash == nil {
		return func() {}, nil
	}
	file, err := ownfile.Nameless(os.O_APPEND)
	if err != nil {
		return nil, withExit(exitEnvironment, fmt.Errorf("keep records in case native code crashes: %w", err))
	}
	outputs.plan.Descriptor = int(file.Fd())
	files := append([]*os.File{file}, outputs.plan.openStreams()...)
	closeAll := func() {
		for _, each := range files {
			_ = each.Close()
		}
	}
	text, err := json.Marshal(outputs.plan)
	if err != nil {
		closeAll()
		return nil, err
	}
	config.Consumers = append(config.Consumers, keepForCrash(file, outputs.madeAnew()))
	a.planForCrash(string(text), files...)
	return func() {
		a.noPlanForCrash()
		closeAll()
	}, nil
}

// openStreams opens the targets that are no files again.  It does not wait for readers: they are there, or will not
// come.
func (p *crashPlan) openStreams() []*os.File {
	var files []*os.File
	p.Streams = make(map[string]int)
	for _, target := range p.Targets {
		info, err := os.Stat(target.Path)
		if target.Path == "-" || err != nil || info.Mode().IsRegular() || info.IsDir() ||
			len(files)+1 == process.MaxFiles {
			continue
		}
		descriptor, err := unix.Open(target.Path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		if err := unix.SetNonblock(descriptor, false); err != nil {
			_ = unix.Close(descriptor)
			continue
		}
		p.Streams[target.Path] = descriptor
		files = append(files, os.NewFile(uintptr(descriptor), target.Path))
	}
	return files
}

func keepForCrash(file *os.File, others []record.Consumer) *recordsForCrash {
	kept := &recordsForCrash{file: file, others: others}
	kept.writer = jsonl.To(kept, "for a crash")
	return kept
}

// Write implements io.Writer, for the writer of records.
func (k *recordsForCrash) Write(line []byte) (int, error) {
	n, err := k.file.Write(line)
	k.kept.Add(int64(n))
	return n, err
}

// Wants implements record.Consumer.
func (k *recordsForCrash) Wants(kind record.Kind) bool {
	switch kind {
	case record.RunStart, record.CaseStart, record.CaseRetry, record.CaseEnd, record.Checked, record.RunEnd:
		return true
	}
	return k.kept.Load() < maxForCrash &&
		slices.ContainsFunc(k.others, func(c record.Consumer) bool { return c.Wants(kind) })
}

// Record implements record.Consumer.  A full disk ends what is kept, and nothing else.
func (k *recordsForCrash) Record(r *record.Record) error {
	if !k.broken {
		k.broken = k.writer.Record(r) != nil
	}
	return nil
}

// Announce is called for each case that runs, even if its records are held until it ends.
func (k *recordsForCrash) Announce(start *record.Record) { _ = k.Record(start) }

// crashedCommand is what a process becomes when native code crashes in it.
const crashedCommand = "crashed"

func newCrashedCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:                crashedCommand + " CODE REPORT PLAN ARGUMENTS",
		Short:              "Close the reports of a run in which native code has crashed",
		Hidden:             true, // users do not type it
		DisableFlagParsing: true,
		Annotations:        configOptional,
		Args:               cobra.ExactArgs(4),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.crashed(args[0], args[1], args[2], args[3])
		},
	}
}

// crashed completes what a crash has left.  The crash itself has been reported already.
func (a *app) crashed(code, text, planText, arguments string) error {
	exit, status := exitBug, record.Broken
	if code == process.Environment {
		exit, status = exitEnvironment, record.Errored
	} else {
		a.reportNativeCrash(text, arguments)
	}
	if planText == "" {
		return reported(exit)
	}
	reason, _, _ := strings.Cut(strings.TrimPrefix(text, "rdmarun: "), "\n")
	var plan crashPlan
	err := json.Unmarshal([]byte(planText), &plan)
	if err == nil {
		err = a.closeReports(&plan, &crashEnd{status: status, reason: reason})
	}
	if err != nil {
		return withHint(
			withExit(exit, fmt.Errorf("close the reports after the crash: %w", err)), "the reports are not complete",
		)
	}
	return reported(exit)
}

func (a *app) reportNativeCrash(text, arguments string) {
	path, err := writeCrashReport(buildReport(arguments) + text)
	if err != nil {
		fmt.Fprintf(
			a.stderr,
			"  hint: this is a bug of rdmarun or of that library; please report it (the report could not be "+
				"written: %v)\n",
			err,
		)
		return
	}
	fmt.Fprintf(
		a.stderr, "  hint: this is a bug of rdmarun or of that library; please report it with the file %s\n", path,
	)
}

// closeReports makes the reports again from the records so far, and completes them.
func (a *app) closeReports(plan *crashPlan, end *crashEnd) error {
	file := os.NewFile(uintptr(plan.Descriptor), "the records")
	if file == nil {
		return errors.New("there are no records")
	}
	defer file.Close()
	if err := passOn(file, []record.Consumer{end}); err != nil {
		return err
	}
	if end.run == nil {
		return nil // nothing had begun
	}
	shown := &heldWriter{out: a.stdout}
	out := io.Writer(shown)
	if plan.ToStderr {
		out = &heldWriter{out: a.stderr, follows: shown}
	}
	again, more, outputs, err := a.consumersAfterCrash(plan, shown, out)
	if err != nil {
		return err
	}
	if err := passOn(file, again); err != nil {
		outputs.discard()
		return err
	}
	shown.open = true
	err = deliver(end.records(), slices.Concat(again, more))
	return errors.Join(err, outputs.close(), linkFolder(plan.Folder))
}

func linkFolder(folder string) error {
	if folder == "" {
		return nil
	}
	return linkLatest(folder)
}

// consumersAfterCrash are those that get all records again, and those that have them and get only the new ones.
func (a *app) consumersAfterCrash(
	plan *crashPlan, stdout *heldWriter, human io.Writer,
) (again, more []record.Consumer, opened *reportsAfterCrash, err error) {
	again = []record.Consumer{show.NewHuman(human, plan.Human)}
	if plan.GitHub {
		again = append(again, github.New(human))
	}
	if last, err := readLastRun(a); err == nil {
		again = append(again, last)
	}
	opened = &reportsAfterCrash{}
	if plan.Log != nil {
		out := a.stderr
		if plan.Log.File != "" && plan.Log.File != "-" {
			file, err := ownfile.Open(plan.Log.File, os.O_WRONLY|os.O_APPEND, ownfile.Shared)
			if err != nil {
				return nil, nil, nil, err
			}
			out, opened.log = file, file
		}
		more = append(more, newRunLog(out, plan.Log.Format, false))
	}
	var targets []output.Target
	for _, target := range plan.Targets {
		stream, isStream := plan.Streams[target.Path]
		switch {
		case isStream:
			file := os.NewFile(uintptr(stream), target.Path)
			opened.streams = append(opened.streams, file)
			if target.Format == "jsonl" {
				more = append(more, jsonl.To(file, target.Path))
				continue
			}
			each, err := output.OpenTo(target, &heldWriter{out: file, follows: stdout})
			if err != nil {
				return nil, nil, nil, errors.Join(err, opened.close())
			}
			opened.continued = append(opened.continued, each)
			again = append(again, each)
		case target.Format != "jsonl":
			targets = append(targets, target)
		case target.Path == "-":
			more = append(more, jsonl.To(a.stdout, "to stdout"))
		default:
			records, err := jsonl.Append(target.Path)
			if err != nil {
				return nil, nil, nil, errors.Join(err, opened.close())
			}
			opened.records = append(opened.records, records)
			more = append(more, records)
		}
	}
	if opened.made, err = openReports(targets, stdout); err != nil {
		return nil, nil, nil, errors.Join(err, opened.close())
	}
	return append(again, opened.made.Consumers()...), more, opened, nil
}

// reportsAfterCrash is what has to be closed.
type reportsAfterCrash struct {
	made    *output.Outputs
	records []*jsonl.Writer
	log     *os.File
	// Reports that were begun on a stream.
	continued []output.Output
	streams   []*os.File
}

func (o *reportsAfterCrash) discard() {
	o.made.Discard()
	o.made = nil
	_ = o.close()
}

func (o *reportsAfterCrash) close() error {
	var failures []error
	if o.made != nil {
		failures = append(failures, o.made.Close())
	}
	for _, each := range o.records {
		failures = append(failures, each.Close())
	}
	for _, each := range o.continued {
		failures = append(failures, each.Close())
	}
	for _, each := range o.streams {
		failures = append(failures, each.Close())
	}
	if o.log != nil {
		failures = append(failures, o.log.Close())
	}
	return errors.Join(failures...)
}

// passOn passes all records of a file on, from its beginning.
func passOn(file *os.File, consumers []record.Consumer) error {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	_, err := jsonl.Read(file, file.Name(), func(r *record.Record) error {
		return deliver([]*record.Record{r}, consumers)
	})
	return err
}

func deliver(records []*record.Record, consumers []record.Consumer) error {
	for _, r := range records {
		for _, each := range consumers {
			if !each.Wants(r.Kind) {
				continue
			}
			if err := each.Record(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// heldWriter drops what the crashed process has written already: its outputs are made again from the same records, so
// they write the same again.
type heldWriter struct {
	out     io.Writer
	open    bool
	follows *heldWriter
}

func (h *heldWriter) Write(data []byte) (int, error) {
	if !h.open && (h.follows == nil || !h.follows.open) {
		return len(data), nil
	}
	return h.out.Write(data)
}

// crashEnd makes the records that are missing at the end of a run.
type crashEnd struct {
	status record.Status
	reason string

	run     *record.Run
	last    record.Record // when it came
	tracker *cases.Tracker
	totals  record.Totals
	ended   bool
	unmet   map[string]int // thresholds that did not hold, of cases that run
}

// Wants implements record.Consumer.
func (e *crashEnd) Wants(record.Kind) bool { return true }

// Record implements record.Consumer.
func (e *crashEnd) Record(r *record.Record) error {
	e.last = record.Record{Time: r.Time, Elapsed: r.Elapsed}
	if e.tracker == nil {
		e.tracker, e.unmet = cases.NewTracker(cases.Limits{}), make(map[string]int)
	}
	e.tracker.Record(r)
	switch r.Kind {
	case record.RunStart:
		e.run = r.Run
	case record.Checked:
		if !r.Threshold.OK {
			e.unmet[r.Case]++
		}
	case record.CaseRetry:
		delete(e.unmet, r.Case)
	case record.CaseEnd:
		e.totals.Count(r.Result)
		e.totals.Thresholds += e.unmet[r.Case]
		delete(e.unmet, r.Case)
	case record.RunEnd:
		e.ended = true
	}
	return nil
}

// records are the ends of the cases that ran, and of the run; none where the run had ended.
func (e *crashEnd) records() []*record.Record {
	if e.ended {
		return nil
	}
	var list []*record.Record
	for _, c := range e.tracker.Unfinished() {
		result := e.result(c)
		e.totals.Count(result)
		list = append(
			list,
			e.record(&record.Record{
				Kind: record.CaseEnd, File: c.File, Case: c.ID, Attempt: c.Attempt, Result: result,
			}),
		)
	}
	ended := e.totals.Passed + e.totals.Failed + e.totals.Errors + e.totals.Skipped + e.totals.XFailed
	e.totals.NotRun = max(0, e.run.Cases-ended)
	if e.run.UntilFail {
		e.totals.NotRun = 0
	}
	e.totals.Took = e.elapsed()
	e.totals.Bug = e.totals.Bug || e.status == record.Broken
	return append(list, e.record(&record.Record{Kind: record.RunEnd, Totals: &e.totals}))
}

// elapsed is the time since the run began.
func (e *crashEnd) elapsed() time.Duration { return e.last.Elapsed + max(0, time.Since(e.last.Time)) }

func (e *crashEnd) record(r *record.Record) *record.Record {
	r.Version, r.Time, r.Elapsed = record.Version, time.Now(), e.elapsed()
	return r
}

func (e *crashEnd) result(c *cases.Case) *record.Result {
	kind, hint := record.KindBug, "please report this"
	if e.status != record.Broken {
		kind, hint = record.KindError, ""
	}
	return &record.Result{
		Name: c.Result.Name, Status: e.status, Reason: e.reason, Took: max(0, time.Since(c.Begin)),
		Steps: c.Steps.Dropped(),
		Failures: []record.Failure{{
			Kind: kind, File: c.File, What: e.reason, Hint: hint, Rerun: c.Start.Rerun,
		}},
	}
}
