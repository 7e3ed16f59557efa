package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"rdmarun/host/report/csv"
	"rdmarun/host/report/html"
	"rdmarun/host/report/jsonl"
	"rdmarun/host/report/junit"
	"rdmarun/host/report/output"
	"rdmarun/host/report/prom"
	"rdmarun/host/report/tap"
	"rdmarun/host/scenario/record"
)

// Output is an output with an end.
type Output interface {
	record.Consumer
	// Close completes the report with what came until now: all of it, or what came until rdmarun was killed.
	Close() error
}

// formats are the outputs by their names.
var formats = []struct {
	name, extension, what string
	make                  func(*output.File) Output
}{
	{"jsonl", "jsonl", "every record, one a line, as JSON: all others can be made of it", nil},
	{"junit", "xml", "JUnit's XML, for CI systems", func(f *output.File) Output { return junit.New(f) }},
	{"tap", "tap", "TAP version 14", func(f *output.File) Output { return tap.New(f) }},
	{"html", "html", "a page to look at", func(f *output.File) Output { return html.New(f) }},
	{"prom", "prom", "metrics as OpenMetrics text", func(f *output.File) Output { return prom.New(f) }},
	{"csv", "csv", "a table for spreadsheets", func(f *output.File) Output { return csv.New(f) }},
}

// Format is a name of a format and what it is.
type Format struct{ Name, Extension, What string }

// Formats lists the formats.
func Formats() []Format {
	list := make([]Format, len(formats))
	for i, each := range formats {
		list[i] = Format{each.name, each.extension, each.what}
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

// Open begins an output.  The path "-" is stdout, which stays open.  The error is that of a path that cannot
// be written.
func Open(target Target, stdout io.Writer) (Output, error) {
	for _, each := range formats {
		switch {
		case each.name != target.Format:
		case each.make == nil && target.Path == "-":
			return jsonl.To(stdout, "to stdout"), nil
		case each.make == nil:
			return jsonl.Create(target.Path)
		case target.Path == "-":
			return each.make(output.To(stdout, "to stdout")), nil
		default:
			file, err := output.Create(target.Path)
			if err != nil {
				return nil, err
			}
			return each.make(file), nil
		}
	}
	return nil, fmt.Errorf("there is no format %q", target.Format)
}
