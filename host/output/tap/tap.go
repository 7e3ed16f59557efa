// Package tap writes TAP version 14 (https://testanything.org/tap-version-14-specification.html).
package tap

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"rdmarun/host/output/cases"
	"rdmarun/host/output/outfile"
	"rdmarun/host/record"
)

// Writer is the output.
type Writer struct {
	file    *outfile.File
	tracker *cases.Tracker
	planned int
	written int
	bailed  bool
	ended   bool
	// trailing: the plan is at the end, as the specification allows, because the number of repetitions until a
	// failure is known last.
	trailing bool
}

// New writes to file.
func New(file *outfile.File) *Writer {
	return &Writer{file: file, tracker: cases.NewTracker(cases.Limits{})}
}

// Wants implements record.Consumer.
func (w *Writer) Wants(kind record.Kind) bool {
	return kind != record.StepEnd && kind != record.Output && kind != record.Measured
}

// Record implements record.Consumer.
func (w *Writer) Record(r *record.Record) error {
	switch r.Kind {
	case record.RunStart:
		w.print("TAP version 14\n")
		w.trailing = r.Run.UntilFail && r.Run.Cases > 0
		if !w.trailing {
			w.planned = r.Run.Cases
			w.plan(w.planned)
		}
		w.print("# provider %s\n", r.Run.On())
	case record.RunEnd:
		w.ended = true
		w.endPlan()
		switch {
		case r.Totals.Interrupted:
			w.bail("interrupted")
		case r.Totals.TimedOut:
			w.bail("the time of the whole run is over")
		}
	}
	if c := w.tracker.Record(r); c != nil {
		w.point(c)
	}
	return w.file.Flush()
}

// Close implements report.Output.
func (w *Writer) Close() error {
	killed := ""
	if !w.ended {
		killed = "the records end before the run did"
	}
	for _, c := range w.tracker.Unfinished() {
		w.point(c)
		killed = c.Result.Reason
	}
	w.endPlan()
	if killed != "" {
		w.bail(killed)
	}
	// What a plan at the top promises must come.
	for !w.bailed && w.written < w.planned {
		w.written++
		w.print("ok %d # SKIP not run\n", w.written)
	}
	return w.file.Commit()
}

// print keeps its error in the file's buffer, which Flush and Commit return.
func (w *Writer) print(format string, args ...any) { _, _ = fmt.Fprintf(w.file, format, args...) }

func (w *Writer) plan(points int) {
	w.print("1..%d%s\n", points, map[bool]string{true: " # SKIP nothing was selected"}[points == 0])
}

// endPlan writes the plan at the end, once.
func (w *Writer) endPlan() {
	if w.trailing {
		w.trailing = false
		w.plan(w.written)
	}
}

func (w *Writer) bail(reason string) {
	if !w.bailed {
		w.print("Bail out! %s\n", escape(reason))
	}
	w.bailed = true
}

func (w *Writer) point(c *cases.Case) {
	w.written++
	word, directive := "ok", ""
	switch {
	case c.Failed():
		word = "not ok"
	case c.Result.Status == record.Skipped:
		directive = " # SKIP " + escape(c.Result.Reason)
	case c.Result.Status == record.XFailed:
		word, directive = "not ok", " # TODO "+escape(c.Result.Reason)
	}
	w.print("%s %d - %s%s\n", word, w.written, escape(c.Title()), directive)
	if c.Result.Status != record.Skipped {
		w.diagnostics(c)
	}
}

// diagnostics is the YAML block.  JSON's strings are YAML's, which is all the YAML that is needed.
func (w *Writer) diagnostics(c *cases.Case) {
	w.print("  ---\n")
	field := func(name string, value any) {
		w.print("  %s: %s\n", name, yaml(value))
	}
	if c.Result.Status != record.Passed {
		field("message", c.Message())
		field("severity", map[bool]string{true: "error", false: "fail"}[c.Infrastructure()])
	}
	if c.Result.Flaky() {
		field("flaky", true)
	}
	field("duration_ms", float64(c.Result.Took.Microseconds())/1e3)
	if len(c.Result.Failures) > 0 {
		first := &c.Result.Failures[0]
		w.print("  at:\n")
		field("  file", first.File)
		if first.Line > 0 {
			field("  line", first.Line)
			field("  column", first.Column)
		}
		if first.Expected != "" {
			field("expected", first.Expected)
		}
		if first.Got != "" {
			field("got", first.Got)
		}
		if first.Rerun != "" {
			field("rerun", first.Rerun)
		}
	}
	if path := c.Result.Capture; path != "" {
		field("capture", path)
	}
	if lines := c.Limited(); lines != nil {
		w.print("  limits:\n")
		for _, line := range lines {
			w.item(line)
		}
	}
	if lines := c.Tallied(); lines != nil {
		w.print("  counted:\n")
		for _, line := range lines {
			w.item(line)
		}
	}
	if text := c.FailureText(); text != "" {
		w.print("  report:\n")
		for _, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
			w.item(line)
		}
	}
	w.print("  ...\n")
}

// yaml writes a string, number or truth value.
func yaml(value any) string {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return `""` // of such values none fails
	}
	return strings.TrimSpace(text.String())
}

// escape keeps a text from being read as more than a description: # begins a directive, and a line ends it.
func escape(text string) string {
	return strings.NewReplacer("\\", `\\`, "#", `\#`, "\n", " ", "\r", " ").Replace(text)
}

func (w *Writer) item(line string) {
	w.print("    - %s\n", yaml(line))
}

// Discard drops the report.
func (w *Writer) Discard() { w.file.Discard() }
