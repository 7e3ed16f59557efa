package html

import (
	"errors"
	"fmt"
	"html/template"
	"io"
	"time"

	"rdmarun/host/output/cases"
	"rdmarun/host/output/outfile"
	"rdmarun/host/record"
)

// Cases beyond these numbers have a line and no details, so that the page of a long run still opens.
const (
	detailedPassed = 300
	detailedFailed = 300
	// openFailed failures are unfolded; with more of them a reader wants to see the list first.
	openFailed = 3
)

// limits of one case; a timeline shows how it began and how it ended.
var limits = cases.Limits{Steps: 80, Lines: 200, Measures: true, Histograms: cases.MaxHistograms}

// Writer is the output.  Details of cases go to a temporary file as the cases end, since the counts and the verdict
// above them are known last.
type Writer struct {
	file      *outfile.File
	spool     outfile.Spool
	parts     [2][]outfile.Part // of cases that failed, and of the others
	templates *template.Template
	tracker   *cases.Tracker
	summary   summary
	passed    int
	failed    int
}

// summary is the top of the page.
type summary struct {
	Run     record.Run
	Begin   time.Time
	Totals  record.Totals
	Counts  map[string]int
	Cases   int
	Ended   bool
	Slowest time.Duration
	Sizes   sizes
	Meshes  []meshView // of the only case
	Bare    int        // cases without details
}

// New writes to file.
func New(file *outfile.File) *Writer {
	return &Writer{
		file: file, templates: parse(), tracker: cases.NewTracker(limits),
		summary: summary{Counts: make(map[string]int)},
	}
}

// Wants implements record.Consumer.
func (w *Writer) Wants(record.Kind) bool { return true }

// Record implements record.Consumer.
func (w *Writer) Record(r *record.Record) error {
	switch r.Kind {
	case record.RunStart:
		w.summary.Run, w.summary.Begin = *r.Run, r.Time
	case record.RunEnd:
		w.summary.Totals, w.summary.Ended = *r.Totals, true
	}
	if w.summary.Begin.IsZero() {
		w.summary.Begin = r.Time
	}
	if !w.summary.Ended {
		w.summary.Totals.Took = r.Elapsed
	}
	if c := w.tracker.Record(r); c != nil {
		return w.add(c)
	}
	return nil
}

func (w *Writer) add(c *cases.Case) error {
	w.summary.Cases++
	w.summary.Counts[group(c)]++
	w.summary.Slowest = max(w.summary.Slowest, c.Result.Took)
	w.summary.Sizes.add(c)
	count, most := &w.passed, detailedPassed
	if c.Failed() {
		count, most = &w.failed, detailedFailed
	}
	*count++
	if *count > most {
		w.summary.Bare++
	}
	view := newCaseView(c, *count <= most)
	if path := c.Result.Capture; path != "" {
		view.Packets = linkTo(path, w.file.Name())
	}
	if c.Failed() && view.Detailed {
		view.Open = w.failed <= openFailed
	}
	parts := &w.parts[1]
	if c.Failed() {
		parts = &w.parts[0]
	}
	if w.alone() {
		w.summary.Meshes, view.Meshes = view.Meshes, nil
		view.Open = true
	}
	var err error
	*parts, err = w.spool.Append(*parts, func(out io.Writer) error {
		return w.templates.ExecuteTemplate(out, "case", view)
	})
	if err != nil {
		return fmt.Errorf("write the report %s: %w", w.file.Name(), err)
	}
	return nil
}

// alone reports whether the run has one case: what it has found is what the reader is looking for.
func (w *Writer) alone() bool { return w.summary.Run.Cases == 1 && !w.summary.Run.UntilFail }

// Close implements report.Output.
func (w *Writer) Close() error {
	defer w.Discard()
	for _, c := range w.tracker.Unfinished() {
		if err := w.add(c); err != nil {
			return err
		}
	}
	view := newSummaryView(&w.summary, w.tracker.Devices())
	if err := w.templates.ExecuteTemplate(w.file, "top", view); err != nil {
		return err
	}
	if err := errors.Join(w.spool.Copy(w.file, w.parts[0]), w.spool.Copy(w.file, w.parts[1])); err != nil {
		return err
	}
	if err := w.templates.ExecuteTemplate(w.file, "bottom", view); err != nil {
		return err
	}
	return w.file.Commit()
}

// Discard drops the report.
func (w *Writer) Discard() {
	w.spool.Close()
	w.file.Discard()
}
