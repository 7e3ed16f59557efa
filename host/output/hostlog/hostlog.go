// Package hostlog writes what happened on each host as a log in text, a file for each host in a folder. It has what
// its roles did and printed, by time.
package hostlog

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rdmarun/host/ownfile"
	"rdmarun/host/printable"
	"rdmarun/host/record"
)

// here is the name of the file of what no other host has reported.
const here = "here"

// maxHosts bounds the files that are open at once: records may come from a file of another user.
const maxHosts = 4096

// stamp is a record's time, by its host's clock.
const stamp = "15:04:05.000000"

// Writer is the output.  What there is of a case is in the files when it ends.
type Writer struct {
	folder string
	logs   map[string]*log // by host
	taken  map[string]bool // names of files
}

type log struct {
	file *os.File
	text *bufio.Writer
	// of is the case of the last line, open are those that have a line and no end.
	of   string
	open map[string]bool
}

// New makes the folder.
func New(folder string) (*Writer, error) {
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, fmt.Errorf("write logs of hosts: %w", err)
	}
	return &Writer{folder: folder, logs: make(map[string]*log), taken: make(map[string]bool)}, nil
}

// Wants implements record.Consumer.
func (w *Writer) Wants(kind record.Kind) bool {
	switch kind {
	case record.CaseStart, record.DeviceUsed, record.StepEnd, record.Output, record.CaseEnd, record.CaseRetry:
		return true
	}
	return false
}

// Record implements record.Consumer.
func (w *Writer) Record(r *record.Record) error {
	switch r.Kind {
	case record.CaseStart:
		for _, place := range r.Start.Roles {
			if err := w.line(r, place.Host, "role %s on %s, %s", place.Role, place.Device, place.Address); err != nil {
				return err
			}
		}
	case record.DeviceUsed:
		return w.line(r, r.Host, "device %s, driver %s", r.Device.Name, r.Device.Driver)
	case record.StepEnd:
		text := strings.TrimSpace(r.Step.Action + " " + r.Step.Text)
		if r.Step.Outcome != "" {
			text += "  -> " + r.Step.Outcome
		}
		return w.line(r, r.Host, "%s %s", r.Step.Role, text)
	case record.Output:
		return w.line(r, r.Host, "%s | %s", r.Line.Role, r.Line.Text)
	case record.CaseEnd, record.CaseRetry:
		// Each log that has the case has its end.
		ended := strings.ToUpper(string(r.Result.Status))
		if why := cmp.Or(firstFailure(r.Result), r.Result.Reason); why != "" {
			ended += ": " + why
		}
		for host, l := range w.logs {
			if !l.open[attempt(r)] {
				continue
			}
			if err := w.line(r, host, "%s", ended); err != nil {
				return err
			}
			delete(l.open, attempt(r))
		}
		return w.flush()
	}
	return nil
}

// firstFailure is what went wrong, with the host that it is of.
func firstFailure(result *record.Result) string {
	if len(result.Failures) == 0 {
		return ""
	}
	f := &result.Failures[0]
	text := f.What
	if who := strings.TrimSpace(f.Role + " " + f.Action); who != "" {
		text = who + ": " + text
	}
	if f.Host != "" {
		text = "host " + f.Host + ": " + text
	}
	return text
}

// attempt names a run of a case.
func attempt(r *record.Record) string {
	if r.Attempt == 0 {
		return r.Case
	}
	return fmt.Sprintf("%s, attempt %d", r.Case, r.Attempt+1)
}

// line writes a line of a host, below the name of its case where the one before is of another.
func (w *Writer) line(r *record.Record, host, format string, values ...any) error {
	l, err := w.of(host)
	if err != nil {
		return err
	}
	if of := attempt(r); r.Case != "" && l.of != of {
		l.of, l.open[of] = of, true
		fmt.Fprintf(l.text, "%s\n", printable.Log(printable.Line(of))) // an error stays until Flush
	}
	// The text of a host is data. It must not contain a command to a terminal or to a CI system that shows the
	// log. It must not begin a line of its own.
	said := printable.Log(strings.TrimSpace(fmt.Sprintf(format, values...)))
	_, err = fmt.Fprintf(
		l.text, "%s  %s\n", r.Time.Format(stamp),
		strings.ReplaceAll(said, "\n", "\n"+strings.Repeat(" ", len(stamp)+2)),
	)
	return err
}

// of is the log of a host, which is made when the host has its first line.
func (w *Writer) of(host string) (*log, error) {
	if host == "" {
		host = here
	}
	if l := w.logs[host]; l != nil {
		return l, nil
	}
	if len(w.logs) == maxHosts {
		return nil, fmt.Errorf("write logs of hosts: there are more than %d", maxHosts)
	}
	name := ownfile.Harmless(host)
	for n := 2; w.taken[name]; n++ {
		name = fmt.Sprintf("%s_%d", ownfile.Harmless(host), n)
	}
	w.taken[name] = true
	file, err := ownfile.Create(filepath.Join(w.folder, name+".log"), ownfile.Shared)
	if err != nil {
		return nil, fmt.Errorf("write logs of hosts: %w", err)
	}
	l := &log{file: file, text: bufio.NewWriter(file), open: make(map[string]bool)}
	w.logs[host] = l
	return l, nil
}

func (w *Writer) flush() error {
	var failed []error
	for _, l := range w.logs {
		failed = append(failed, l.text.Flush())
	}
	return errors.Join(failed...)
}

// Close implements report.Output.
func (w *Writer) Close() error {
	failed := []error{w.flush()}
	for _, l := range w.logs {
		failed = append(failed, l.file.Close())
	}
	return errors.Join(failed...)
}
