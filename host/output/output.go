// Package output has the outputs of a run that are files.  Each reads records (package record), during the
// run or later from a JSON Lines file (package jsonl), and works the same in both.
package output

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"rdmarun/host/output/csv"
	"rdmarun/host/output/hdrlog"
	"rdmarun/host/output/hostlog"
	"rdmarun/host/output/html"
	"rdmarun/host/output/jsonl"
	"rdmarun/host/output/junit"
	"rdmarun/host/output/outfile"
	"rdmarun/host/output/prom"
	"rdmarun/host/output/tap"
	"rdmarun/host/record"
)

// Output is a consumer that has to be closed.
type Output interface {
	record.Consumer
	// Close completes the report with what came until now: all of it, or what came until rdmarun was killed.
	Close() error
}

// formats are the outputs by their names; make is for those that are written at once, in the end.
var formats = []struct {
	name, extension, what string
	make                  func(*outfile.File) Output
	open                  func(path string, stdout io.Writer) (Output, error)
}{
	{
		name: "jsonl", extension: "jsonl", what: "every record, one a line, as JSON: all others can be made of it",
		open: openRecords,
	},
	{
		name: "junit", extension: "xml", what: "JUnit's XML, for CI systems",
		make: func(f *outfile.File) Output { return junit.New(f) },
	},
	{name: "tap", extension: "tap", what: "TAP version 14", make: func(f *outfile.File) Output { return tap.New(f) }},
	{
		name: "html", extension: "html", what: "a page to look at",
		make: func(f *outfile.File) Output { return html.New(f) },
	},
	{
		name: "prom", extension: "prom", what: "metrics as OpenMetrics text",
		make: func(f *outfile.File) Output { return prom.New(f) },
	},
	{
		name: "csv", extension: "csv", what: "a table for spreadsheets",
		make: func(f *outfile.File) Output { return csv.New(f) },
	},
	{name: "hdr", what: "a folder of HdrHistogram logs, one of each measurement of times", open: openHistograms},
	{name: "log", what: "a folder of logs in text, one of each host", open: openLogs},
}

func openRecords(path string, stdout io.Writer) (Output, error) {
	if path == "-" {
		return jsonl.To(stdout, "to stdout"), nil
	}
	return jsonl.Create(path)
}

func openHistograms(path string, _ io.Writer) (Output, error) {
	if path == "-" {
		return nil, errors.New("histograms are files in a folder: hdr=FOLDER")
	}
	return hdrlog.New(path)
}

func openLogs(path string, _ io.Writer) (Output, error) {
	if path == "-" {
		return nil, errors.New("logs of hosts are files in a folder: log=FOLDER")
	}
	return hostlog.New(path)
}

// Format is a name of a format and what it is.
type Format struct {
	Name, Extension, What string
	Folder                bool // it has a folder of files, and no single one
}

// Formats lists the formats.
func Formats() []Format {
	list := make([]Format, len(formats))
	for i, each := range formats {
		list[i] = Format{each.name, each.extension, each.what, each.extension == ""}
	}
	return list
}

// Target is an output that was asked for.
type Target struct{ Format, Path string }

// ParseTarget reads FORMAT=PATH.
func ParseTarget(text string) (Target, error) {
	format, path, ok := strings.Cut(text, "=")
	if !ok || path == "" {
		return Target{}, fmt.Errorf("%q is not of the form FORMAT=FILE, for example html=report.html", text)
	}
	var names []string
	for _, each := range formats {
		names = append(names, each.name)
	}
	if !slices.Contains(names, format) {
		return Target{}, fmt.Errorf("there is no format %q: %s", format, strings.Join(names, ", "))
	}
	return Target{format, path}, nil
}

// OpenTo begins an output, of a format that has one file, on a writer that stays open; the target's path is for
// messages.
func OpenTo(target Target, out io.Writer) (Output, error) {
	for _, each := range formats {
		if each.name == target.Format && each.make != nil {
			return each.make(outfile.To(out, target.Path)), nil
		}
	}
	return nil, fmt.Errorf("the format %q has no single file", target.Format)
}

// Open begins an output.  The path "-" is stdout, which stays open.  The error is that of a path that cannot
// be written.
func Open(target Target, stdout io.Writer) (Output, error) {
	for _, each := range formats {
		switch {
		case each.name != target.Format:
		case each.open != nil:
			return each.open(target.Path, stdout)
		case target.Path == "-":
			return OpenTo(Target{target.Format, "to stdout"}, stdout)
		default:
			file, err := outfile.Create(target.Path)
			if err != nil {
				return nil, err
			}
			return each.make(file), nil
		}
	}
	return nil, fmt.Errorf("there is no format %q", target.Format)
}

// Outputs are several outputs of one run.
type Outputs struct {
	outputs []Output
	// broken are those that could not be written: closing them would make half a report look whole.
	broken []bool
}

// OpenAll begins all outputs, or none.
func OpenAll(targets []Target, stdout io.Writer) (*Outputs, error) {
	o := &Outputs{}
	places := make(map[string]string)
	for _, target := range targets {
		if other, taken := places[filepath.Clean(target.Path)]; taken {
			o.Discard()
			return nil, fmt.Errorf("%s and %s are both to be written to %s", other, target.Format, target.Path)
		}
		places[filepath.Clean(target.Path)] = target.Format
		each, err := Open(target, stdout)
		if err != nil {
			o.Discard()
			return nil, err
		}
		o.outputs = append(o.outputs, each)
		o.broken = append(o.broken, false)
	}
	return o, nil
}

// Consumers are the outputs, for a stream.
func (o *Outputs) Consumers() []record.Consumer {
	list := make([]record.Consumer, len(o.outputs))
	for i := range o.outputs {
		list[i] = &member{o, i}
	}
	return list
}

// Close completes all outputs; the error has those of all.
func (o *Outputs) Close() error {
	var failures []error
	for i, each := range o.outputs {
		if o.broken[i] {
			discard(each)
			continue
		}
		failures = append(failures, each.Close())
	}
	o.outputs = nil
	return errors.Join(failures...)
}

// Discard drops all outputs; records written so far stay.
func (o *Outputs) Discard() {
	for _, each := range o.outputs {
		discard(each)
	}
	o.outputs = nil
}

// discard drops a report that is given up; records written so far stay.
func discard(each Output) {
	if d, ok := each.(interface{ Discard() }); ok {
		d.Discard()
		return
	}
	_ = each.Close()
}

// member notes which output failed.
type member struct {
	all    *Outputs
	number int
}

// Wants implements record.Consumer.
func (m *member) Wants(kind record.Kind) bool { return m.all.outputs[m.number].Wants(kind) }

// Record implements record.Consumer.
func (m *member) Record(r *record.Record) error {
	err := m.all.outputs[m.number].Record(r)
	if err != nil {
		m.all.broken[m.number] = true
	}
	return err
}
