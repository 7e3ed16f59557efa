package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/guest"
	"rdmarun/host/printable"
	"rdmarun/host/scenario"
)

const validateLong = `Check scenarios without running them: files, and all scenarios below directories
(default: ./scenarios).  All errors of all files are shown, each with its place, the
line, and what to do about it.  No device is touched and no socket opened; of
scripts the syntax is checked, and nothing runs.

With --plan it also shows what would run: every case with its parameters, tags,
time limit, number of steps and what it needs.

--format json is for scripts, --format github for annotations of a pull request.

Exit code 3 when something is wrong.`

func newValidateCommand(a *app) *cobra.Command {
	var params paramFlags
	withPlan := false
	color, format := newColorFlag(), newFormatFlag("text", "json", "github")
	command := &cobra.Command{
		Use:   "validate [FILE|DIRECTORY...]",
		Short: "Check scenarios without running them",
		Long:  validateLong,
		Example: "  rdmarun validate scenarios\n  rdmarun validate my.yaml -p size=4KiB --plan\n" +
			"  rdmarun validate --format json | jq '.errors[].message'",
		RunE: func(command *cobra.Command, args []string) error {
			return a.validate(command.Context(), args, &params, color, format.value, withPlan)
		},
		ValidArgsFunction: completeScenarios,
	}
	params.register(a, command)
	command.Flags().BoolVar(&withPlan, "plan", false, "show what would run")
	format.register(command)
	color.register(command)
	return command
}

func (a *app) validate(
	ctx context.Context, args []string, params *paramFlags, color *choiceFlag, format string, withPlan bool,
) (err error) {
	parser := guest.NewScriptParser(guest.RuntimeConfig{
		CacheDir: a.env[guest.CacheVariable], Compiler: guest.OwnCompiler(), Warn: a.warn,
	})
	defer func() { err = errors.Join(err, parser.Close()) }()
	params.parse = func(script *guest.Script) error { return parser.Parse(ctx, script) }
	if format != "text" {
		return a.validateForMachines(ctx, args, params, format, withPlan)
	}
	checked, err := a.checkScenarios(ctx, args, params, color.style(a, a.stderr))
	if err != nil {
		return err
	}
	cases, err := scenario.Select(checked.Scenarios, scenario.Selection{})
	if err != nil {
		return err
	}
	if withPlan {
		if err := printPlan(a.stdout, describeCases(cases, nil)); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(a.stdout, "%s, %s: no errors\n", count(checked.Files, "file"), count(len(cases), "case"))
	return err
}

// validateForMachines prints everything, errors included, on standard output.
func (a *app) validateForMachines(
	ctx context.Context, args []string, flags *paramFlags, format string, withPlan bool,
) error {
	params, err := flags.read(a)
	if err != nil {
		return err
	}
	paths, err := scenarioPaths(args)
	if err != nil {
		return err
	}
	locate, err := a.unpackAll(paths)
	if err != nil {
		return err
	}
	checked, err := scenario.CheckIn(ctx, locate, paths, params)
	if err != nil {
		return err
	}
	if err := a.paramErrors(checked.ParamErrors); err != nil {
		return err
	}
	result := newValidation(checked, withPlan)
	if format == "github" {
		err = result.printAnnotations(a.stdout)
	} else {
		err = printJSON(a.stdout, result)
	}
	if err != nil {
		return err
	}
	switch {
	case checked.Errors.Len() > 0:
		return reported(exitInvalid)
	case checked.Files == 0:
		return reported(exitNothing)
	}
	return nil
}

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
			Code: d.Code.Number(), Level: level, Message: d.Message, Hint: d.Hint,
		})
	}
	result.OK = checked.Errors.Len() == 0
	if withPlan && result.OK {
		cases, _ := scenario.Select(checked.Scenarios, scenario.Selection{}) // no pattern, no error
		result.Cases = describeCases(cases, nil)
	}
	return result
}

// printAnnotations writes the workflow commands of GitHub Actions: one line for each error, which GitHub shows at the
// line of the file.
func (v validation) printAnnotations(w io.Writer) error {
	// A message may contain something that would end the workflow command.
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	for _, p := range v.Errors {
		message := p.Message
		if p.Hint != "" {
			message += "\nhint: " + p.Hint
		}
		_, err := fmt.Fprintf(w, "::%s file=%s,line=%d,col=%d,title=%s::%s\n",
			p.Level, property.Replace(printable.Line(p.File)), p.Line, p.Column, p.Code,
			data.Replace(printable.Text(message)))
		if err != nil {
			return err
		}
	}
	for _, c := range v.Cases {
		if _, err := fmt.Fprintf(
			w, "::notice title=%s::%s\n", property.Replace(printable.Line(c.ID)),
			data.Replace(printable.Text(c.line())),
		); err != nil {
			return err
		}
	}
	return nil
}
