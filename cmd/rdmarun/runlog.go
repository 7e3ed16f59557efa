package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/ownfile"
	"rdmarun/host/printable"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// logFlags select whether and how a run is logged.
type logFlags struct {
	file   string
	format *formatFlag
	// command reports whether a flag was given.
	command *cobra.Command
}

func (f *logFlags) register(command *cobra.Command) {
	f.format, f.command = newFormatFlag("text", "json"), command
	command.Flags().StringVar(
		&f.file, "log-file", "", "append a log of the run to a file (-: stderr), with -v also of each step",
	)
	command.Flags().Var(f.format, "log-format", "form of the log (on stderr without --log-file)")
	completeFlag(command, "log-format", cobra.FixedCompletions(f.format.choices, cobra.ShellCompDirectiveNoFileComp))
}

// asked reports whether there is to be a log.
func (f *logFlags) asked() bool { return f.file != "" || f.command.Flags().Changed("log-format") }

// plan is what the process that follows a crash needs of it.
func (f *logFlags) plan() *logPlan {
	if !f.asked() {
		return nil
	}
	return &logPlan{File: f.file, Format: f.format.value}
}

// open adds a log to the consumers of a run when one was asked for.
func (f *logFlags) open(a *app, steps bool, config *scenario.RunConfig) (closing func() error, err error) {
	out, closing := a.aside(), func() error { return nil }
	switch {
	case !f.asked():
		return closing, nil
	case f.file != "" && f.file != "-":
		file, err := ownfile.Open(f.file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, ownfile.Shared)
		if err != nil {
			return nil, withExit(exitEnvironment, fmt.Errorf("--log-file: %w", err))
		}
		out, closing = file, file.Close
	}
	config.Consumers = append(config.Consumers, newRunLog(out, f.format.value, steps))
	return closing, nil
}

// runLog writes records as lines of a log, for users who collect the logs of many programs in one place.  It is a
// digest; --out jsonl=FILE has everything.
type runLog struct {
	logger *slog.Logger
	steps  bool
	out    *failingWriter
}

// failingWriter keeps the error that slog drops.
type failingWriter struct {
	w   io.Writer
	err error
}

func (f *failingWriter) Write(p []byte) (int, error) {
	_, err := io.WriteString(f.w, printable.Log(string(p))) // Azure obeys within a line
	if err != nil && f.err == nil {
		f.err = err
	}
	return len(p), err
}

func newRunLog(w io.Writer, format string, steps bool) *runLog {
	out := &failingWriter{w: w}
	options := &slog.HandlerOptions{Level: slog.LevelDebug}
	var handler slog.Handler = slog.NewTextHandler(out, options)
	if format == "json" {
		handler = slog.NewJSONHandler(out, options)
	}
	return &runLog{logger: slog.New(handler), steps: steps, out: out}
}

// Wants implements record.Consumer.
func (l *runLog) Wants(kind record.Kind) bool { return kind != record.StepEnd || l.steps }

// Record implements record.Consumer.
func (l *runLog) Record(r *record.Record) error {
	log := l.logger
	if r.Case != "" {
		log = log.With("case", r.Case)
	}
	switch r.Kind {
	case record.RunStart:
		log.Info("run starts", "provider", r.Run.On(), "cases", r.Run.Cases)
	case record.CaseStart:
		if r.Start.Seed != nil {
			log = log.With("seed", *r.Start.Seed)
		}
		log.Info("case starts")
		for _, role := range r.Start.Roles {
			place := []any{"role", role.Role, "device", role.Device, "address", role.Address}
			if role.Provider != "" {
				place = append(place, "provider", role.Provider)
			}
			log.Debug("role", place...)
		}
	case record.StepEnd:
		log.Debug("step", "role", r.Step.Role, "action", r.Step.Action, "given", r.Step.Text, "outcome", r.Step.Outcome,
			"ok", r.Step.OK, "line", r.Step.Line, "took", r.Step.OnClock().Took)
	case record.Output:
		log.Info("output", "role", r.Line.Role, "text", r.Line.Text)
	case record.Measured:
		log.Info(
			"measured", "name", r.Measure.Name, "role", r.Measure.Role, "messages", r.Measure.Messages, "took",
			r.Measure.Took,
		)
	case record.Meshed:
		log.Info(
			"mesh measured", "name", r.Mesh.Name, "pairs", len(r.Mesh.Pairs), "outliers", r.Mesh.Outliers, "lost",
			r.Mesh.Lost,
		)
	case record.Checked:
		if !r.Threshold.OK {
			log.Error(
				"threshold failed", "threshold", r.Threshold.Text, "value", r.Threshold.Value, "reason",
				r.Threshold.Reason,
			)
		}
	case record.CaseRetry, record.CaseEnd:
		l.end(log, r)
	case record.RunEnd:
		log.Info("run ends", "passed", r.Totals.Passed, "failed", r.Totals.Failed, "errors", r.Totals.Errors,
			"skipped", r.Totals.Skipped, "not_run", r.Totals.NotRun, "took", r.Totals.Took)
	}
	if l.out.err != nil {
		return fmt.Errorf("write the log: %w", l.out.err)
	}
	return nil
}

// end logs how a case has ended, and with a failure everything that is needed to look for its cause.
func (l *runLog) end(log *slog.Logger, r *record.Record) {
	attributes := []any{"status", string(r.Result.Status), "steps", r.Result.Steps, "took", r.Result.Took}
	if r.Result.Reason != "" {
		attributes = append(attributes, "reason", r.Result.Reason)
	}
	switch {
	case r.Kind == record.CaseRetry:
		log.Warn("case is tried again", attributes...)
	case r.Result.Status.OK():
		log.Info("case ends", attributes...)
	default:
		log.Error("case ends", attributes...)
	}
	for _, f := range r.Result.Failures {
		log.Error("failure", "kind", f.Kind, "at", strings.TrimSuffix(
			fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column), ":0:0",
		),
			"role", f.Role, "action", f.Action, "what", f.What, "expected", f.Expected, "got", f.Got, "rerun", f.Rerun)
	}
}
