// Package github writes the workflow commands by which GitHub Actions shows failures at their lines
// (https://docs.github.com/actions/reference/workflow-commands-for-github-actions).
package github

import (
	"fmt"
	"io"
	"strings"

	"rdmarun/host/output/cases"
	"rdmarun/host/printable"
	"rdmarun/host/record"
)

// Writer is the output.
type Writer struct {
	out     io.Writer
	tracker *cases.Tracker
}

// New writes to out, which is the log of the job.
func New(out io.Writer) *Writer {
	return &Writer{out: out, tracker: cases.NewTracker(cases.Limits{})}
}

// Wants implements record.Consumer.
func (w *Writer) Wants(kind record.Kind) bool {
	return kind == record.CaseStart || kind == record.CaseEnd || kind == record.CaseRetry
}

// Record implements record.Consumer.
func (w *Writer) Record(r *record.Record) error {
	if c := w.tracker.Record(r); c != nil {
		return w.add(c)
	}
	return nil
}

// Close implements report.Output.
func (w *Writer) Close() error {
	for _, c := range w.tracker.Unfinished() {
		if err := w.add(c); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) add(c *cases.Case) error {
	if c.Result.Flaky() {
		return w.command("warning", c, &record.Failure{File: c.File}, "flaky: "+c.Result.Reason)
	}
	if !c.Failed() {
		return nil
	}
	if len(c.Result.Failures) == 0 {
		return w.command("error", c, &record.Failure{File: c.File}, c.Message())
	}
	for i := range c.Result.Failures {
		f := &c.Result.Failures[i]
		text := f.What
		if f.Host != "" {
			text = "host " + f.Host + ": " + text
		}
		for _, user := range f.Used {
			text += "\nused by: " + user
		}
		for _, note := range [][2]string{
			{"expected", f.Expected}, {"got", f.Got}, {"hint", f.Hint}, {"rerun", f.Rerun},
		} {
			if note[1] != "" {
				text += "\n" + note[0] + ": " + note[1]
			}
		}
		if err := w.command("error", c, f, text); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) command(name string, c *cases.Case, at *record.Failure, text string) error {
	place := "file=" + property(at.File)
	if at.Line > 0 {
		place += fmt.Sprintf(",line=%d,col=%d", at.Line, max(at.Column, 1))
	}
	if _, err := fmt.Fprintf(w.out, "::%s %s,title=%s::%s\n", name, place, property(c.ID), message(text)); err != nil {
		return fmt.Errorf("write the annotations: %w", err)
	}
	return nil
}

func message(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(printable.Text(text))
}

func property(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(
		printable.Line(text),
	)
}
