package main

import (
	"fmt"
	"io"
	"strings"

	"rdmarun/host/printable"
	"rdmarun/host/scenario"
)

// validationVersion is raised when a field of the JSON changes its meaning or goes away.
const validationVersion = 1

// validation is what `validate --format json` prints.
type validation struct {
	Version int           `json:"version"`
	Files   int           `json:"files"`
	OK      bool          `json:"ok"`
	Errors  []problemRow  `json:"errors"`
	Cases   []caseSummary `json:"cases,omitempty"` // with --plan
}

// problemRow is one thing wrong with a file.
type problemRow struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	Column  int    `json:"column"`
	Code    string `json:"code"`
	Level   string `json:"level"` // error or warning
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func newValidation(checked *scenario.Checked, withPlan bool) validation {
	result := validation{Version: validationVersion, Files: checked.Files, Errors: []problemRow{}}
	for _, d := range checked.Errors.Sorted() {
		level := "error"
		if d.Code.IsWarning() {
			level = "warning"
		}
		result.Errors = append(result.Errors, problemRow{
			File: d.Span.File(), Line: d.Span.Line, Column: d.Span.Column,
			Code: string(d.Code), Level: level, Message: d.Message, Hint: d.Hint,
		})
	}
	result.OK = checked.Errors.Len() == 0
	if withPlan && result.OK {
		cases, _ := scenario.Select(checked.Scenarios, scenario.Selection{}) // no pattern, no error
		result.Cases, _ = describeCases(cases, nil)
	}
	return result
}

// printAnnotations writes the workflow commands of GitHub Actions: one line for each error, shown beside the
// line of the file.
func (v validation) printAnnotations(w io.Writer) error {
	// A message may hold what would end the command.
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, p := range v.Errors {
		message := p.Message
		if p.Hint != "" {
			message += "\nhint: " + p.Hint
		}
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n",
			p.Level, property.Replace(printable.Line(p.File)), p.Line, p.Column, p.Code, data.Replace(printable.Text(message)))
		if err != nil {
			return err
		}
	}
	for _, c := range v.Cases {
		if _, err := fmt.Fprintf(w, "::notice title=%s::%s\n", property.Replace(printable.Line(c.ID)), data.Replace(printable.Text(c.line()))); err != nil {
			return err
		}
	}
	return nil
}
