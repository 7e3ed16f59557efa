package verb

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/shell"
	"rdmarun/host/scenario/testbed"
)

// programVerbs are those of roles that native programs play; runner.go has the steps that start and end these.
var programVerbs = []Verb{
	act("write", "", "Write to the standard input of a program.", func(
		ctx context.Context, call *Call, args *struct {
			Text  string `arg:"text,required" doc:"what to write; a line ends with a newline: \"quit\\n\""`
			Close bool   `arg:"close" default:"false" doc:"end the input after it"`
			within
		},
	) error {
		return args.awaitLocked(ctx, call, func(ctx context.Context) error {
			return call.Role.Program().Write(ctx, args.Text, args.Close)
		}, &testbed.Failure{What: "the program does not read its input", Expected: "it to read"})
	}).scalar("text").ofProgram(),
	ask("wait_output", "", "Wait until a program prints a line that matches.  The next such step looks at the lines "+
		"after that.  Named groups of the expression, (?P<name>...), are results.",
		waitOutput).scalar("matches").ofProgram(),
}

// CommandLine is a program with its arguments.
type CommandLine []string

// String is the command as a shell takes it.
func (c CommandLine) String() string {
	words := make([]string, len(c))
	for i, word := range c {
		words[i] = shell.Word(word)
	}
	return strings.Join(words, " ")
}

// programArguments are what a program starts with.
type programArguments struct {
	Command CommandLine   `arg:"command" doc:"the program and its arguments"`
	Input   testbed.Input `arg:"input" doc:"what it finds"`
}

// programEnd is how a program ended.
type programEnd struct {
	Exit     int           `result:"exit" default:"0" doc:"exit code; 128 and the number of the signal that ended it"`
	Outcome  string        `result:"outcome" words:"exited|signaled|timed_out|stopped|failed" doc:"how it ended"`
	Signal   string        `result:"signal" doc:"the signal that ended it, SIGSEGV; \"\" for none"`
	Duration time.Duration `result:"duration,varies" doc:"how long it ran"`
	Stdout   string        `result:"stdout,varies" doc:"what it printed: the last 64KiB"`
	Stderr   string        `result:"stderr,varies" doc:"what it printed to standard error: the last 64KiB"`
	Lines    int           `result:"lines" doc:"how many lines it printed to standard output"`
}

func (e programEnd) summary() string {
	if e.Signal != "" {
		return fmt.Sprintf("%s by %s", e.Outcome, e.Signal)
	}
	return fmt.Sprintf("%s, exit code %d", e.Outcome, e.Exit)
}

// awaitProgram waits for the end of a program.
func awaitProgram(
	ctx context.Context, call *Call, w *endWait, wait func(context.Context) (testbed.ProgramResult, error),
) (programEnd, error) {
	result, err := awaitEnd(ctx, call, w, "program", wait)
	if err != nil {
		return programEnd{}, err
	}
	call.Outcome.Hint = result.Reason + result.Trace
	end := programEnd{
		Exit: result.Exit, Outcome: result.Outcome, Signal: result.Signal, Duration: result.Duration,
		Stdout: result.Stdout, Stderr: result.Stderr, Lines: result.Lines,
	}
	return end, nil
}

// outputArguments are those of wait_output.
type outputArguments struct {
	Matches *regexp.Regexp   `arg:"matches,required" doc:"a regular expression (of Go) that is found in the line"`
	Until   *regexp.Regexp   `arg:"until" doc:"take every matching line, until one that contains this (default: only the first). within limits the time of each"`
	Units   optional[Units]  `arg:"as" doc:"the units of groups: {average: Gbit/s, p99: us, size: B}; values with a unit are metrics"`
	Stream  optional[string] `arg:"stream" words:"stdout|stderr" doc:"the stream of the line (default: either)"`
	within
}

// results are the named groups.
func (a *outputArguments) results() []Result {
	if a.Matches == nil {
		return nil
	}
	var named []Result
	for _, name := range a.Matches.SubexpNames() {
		if name != "" {
			named = append(named, Result{Name: name, Type: a.unit(name).resultType()})
		}
	}
	return named
}

// unit is that of a group; text where none is said.
func (a *outputArguments) unit(group string) Unit { return a.Units.Value[group] }

// check rejects units of groups that the expression does not have, and two groups of one name.
func (a *outputArguments) check() *Refusal {
	if a.Matches == nil {
		return nil
	}
	groups := a.Matches.SubexpNames()
	for i, name := range groups {
		switch {
		case name == "":
		case slices.Contains(groups[:i], name):
			return &Refusal{Argument: "matches", Message: fmt.Sprintf("two groups are called %q", name)}
		case slices.Contains([]string{"line", "count", "took"}, name):
			return &Refusal{
				Argument: "matches", Message: fmt.Sprintf("every result has %q already", name),
				Hint: "choose another name for the group",
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Units.Value)) {
		if !slices.Contains(groups, name) {
			return &Refusal{
				Argument: "as", Message: fmt.Sprintf("the expression has no group %q", name),
				Hint: fmt.Sprintf("(?P<%s>[0-9.]+)", name),
			}
		}
	}
	return nil
}

// sizeGroup is the group with the size of the messages that the other values of the line are of.
const sizeGroup = "size"

// IsSize reports whether a group is the size of messages, and no value of its own.
func IsSize(group string, unit Unit) bool { return group == sizeGroup && unit.measures == record.Bytes }

// printed is a line that wait_output has found, and what it took of it.
type printed struct {
	Line  string `result:"line,varies" doc:"the whole line, with until the last one"`
	Count int    `result:"count" doc:"how many lines were taken"`
}

func (p printed) summary() string { return strconv.Quote(Brief(p.Line)) }

func waitOutput(ctx context.Context, call *Call, args *outputArguments) (printed, error) {
	late := &testbed.Failure{
		What: "no line matches", Expected: fmt.Sprintf("a line like /%s/", args.Matches),
	}
	expressions := []*regexp.Regexp{args.Matches}
	if args.Until != nil {
		expressions = []*regexp.Regexp{args.Until, args.Matches}
	}
	var last printed
	for {
		var line string
		var which int
		err := args.awaitLocked(ctx, call, func(ctx context.Context) (err error) {
			line, which, err = call.Role.Program().AwaitLine(ctx, args.Stream.or(""), expressions...)
			if err != nil {
				late.Got = "nothing like it within " + quantity.Time(args.Within) + call.Role.Program().LastLine()
			}
			return err
		}, late)
		switch {
		case err != nil:
			return printed{}, err
		case args.Until != nil && which == 0 && last.Count == 0:
			late.Got = fmt.Sprintf("none before %.200q", line)
			return printed{}, late
		case args.Until != nil && which == 0:
			return last, nil
		}
		if err := args.take(call, line); err != nil {
			return printed{}, err
		}
		last = printed{line, last.Count + 1}
		call.Outcome.Record["count"] = last.Count
		if args.Until == nil {
			return last, nil
		}
	}
}

// take takes the values of a line.
func (a *outputArguments) take(call *Call, line string) error {
	values := map[string]any{"line": line}
	var found []*record.Measure
	var size int64
	match := a.Matches.FindStringSubmatchIndex(line)
	for i, name := range a.Matches.SubexpNames() {
		if name == "" || match[2*i] < 0 { // of another alternative of the expression
			continue
		}
		unit, text := a.unit(name), line[match[2*i]:match[2*i+1]]
		base, value, err := unit.parse(text)
		if err != nil {
			return &testbed.Failure{
				What: "wrong " + name, Expected: err.Error(), Got: fmt.Sprintf("%q in %q", text, line),
			}
		}
		values[name] = value
		switch {
		case IsSize(name, unit):
			size = int64(base)
		case unit.measures != "":
			found = append(found, &record.Measure{
				What: record.What{Name: name, Type: record.ProgramType}, Role: call.Role.Name,
				Printed: &record.Printed{Value: base, Unit: unit.measures},
			})
		}
	}
	for _, m := range found {
		m.Size = size
	}
	for _, m := range found {
		call.Measured([]*record.Measure{m})
	}
	call.Outcome.Record = values
	return nil
}
