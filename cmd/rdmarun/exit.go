package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"

	"rdmarun/host/printable"
	"rdmarun/rdmacore"
)

// exitCode is the process's exit status.  The numbers are an interface: scripts and CI read them.
type exitCode int

const (
	exitOK     exitCode = 0 // no selected case failed
	exitFailed exitCode = 1 // a case failed
	// a guest module that cannot be compiled (the Go runtime exits 2, too, on a panic that is not recovered)
	exitNotCompiled exitCode = 2
	exitInvalid     exitCode = 3   // a scenario or a guest module is invalid; nothing ran
	exitEnvironment exitCode = 4   // no such provider or device, or it failed
	exitNothing     exitCode = 5   // nothing was selected
	exitThreshold   exitCode = 6   // only thresholds failed, or a baseline was better
	exitUsage       exitCode = 64  // bad flag or argument (EX_USAGE of sysexits.h)
	exitBug         exitCode = 70  // a bug in rdmarun (EX_SOFTWARE)
	exitTimeout     exitCode = 124 // the whole run took too long (as timeout(1))
	exitTrapped     exitCode = 125 // a guest trapped
	exitNotAGuest   exitCode = 126 // not a WASM guest, or one that imports what this host lacks
	exitNotRunnable exitCode = 126 // exec: the program cannot be run on the soft provider
	exitNoProgram   exitCode = 127 // exec: no such program (as env(1))
	exitInterrupted exitCode = 130 // SIGINT
	exitTerminated  exitCode = 143 // SIGTERM
)

// exitCodes lists every code with its meaning, in ascending order, for `rdmarun help exit-codes`.
var exitCodes = []struct {
	code    exitCode
	meaning string
}{
	{exitOK, "all selected cases passed, were skipped, or failed as their xfail says"},
	{
		exitFailed,
		"a case failed: an expectation did not match, a guest failed, or something was left behind; conformance: " +
			"the runs differ; check: the program has mistakes",
	},
	{
		exitNotCompiled,
		"guest run, guest compile: the guest could not be compiled within the limits of memory and processor time",
	},
	{exitInvalid, "a scenario, a guest module or a file of records is invalid; nothing ran"},
	{
		exitEnvironment,
		"the environment failed: no such provider, device, host or file, or too little memory, threads or file " +
			"descriptors",
	},
	{exitNothing, "no case was selected (as pytest)"},
	{
		exitThreshold,
		"no case failed otherwise, but a threshold failed, or a case or metric is worse than in the baseline (run, " +
			"perf, compare)",
	},
	{
		exitUsage,
		"the command line is wrong: a flag, an argument, a parameter, or a file that a flag names, such as --lab",
	},
	{exitBug, "rdmarun has a bug, or native code crashed, such as a device's library; a file has the report"},
	{exitTimeout, "the run exceeded --timeout (as timeout(1)); guest run: the guest exceeded --time"},
	{exitTrapped, "guest run: the guest trapped"},
	{
		exitNotAGuest,
		"guest run, guest inspect: not a WebAssembly guest, or it imports what this host lacks; exec: the program " +
			"cannot be run on soft",
	},
	{exitNoProgram, "exec: no such program (as env(1))"},
	{exitInterrupted, "interrupted by SIGINT"},
	{exitTerminated, "terminated by SIGTERM"},
}

// exitError gives an error its exit code, and may mark that its text was already shown.
type exitError struct {
	code exitCode
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// withExit makes the command exit with that code.  The outermost one wins.
func withExit(code exitCode, err error) error {
	if err == nil {
		return nil
	}
	return &exitError{code, err}
}

// usageError is for what is wrong with a command line.
func usageError(format string, args ...any) error {
	return withExit(exitUsage, fmt.Errorf(format, args...))
}

// reportedError is an outcome that the command has already shown in its own form (a summary, a list of positions).
// Only its exit code is left to report.
type reportedError struct{ code exitCode }

func (e reportedError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// reported ends the command with that code and prints nothing more; nil for exitOK.
func reported(code exitCode) error {
	if code == exitOK {
		return nil
	}
	return reportedError{code}
}

// hintError carries what the user can do about an error; it survives wrapping.
type hintError struct {
	err  error
	hint string
}

func (e *hintError) Error() string { return e.err.Error() }
func (e *hintError) Unwrap() error { return e.err }

// withHint adds a remedy, printed on a line of its own.
func withHint(err error, hint string) error {
	if err == nil || hint == "" {
		return err
	}
	return &hintError{err, hint}
}

// codeOf is the exit code of a command that returned err while ctx was its context.
func codeOf(ctx context.Context, err error) exitCode {
	if err == nil {
		return exitOK
	}
	var (
		interrupt *interruptError
		shown     reportedError
		exit      *exitError
		core      *rdmacore.Error
	)
	switch {
	case errors.As(err, &exit) && exit.code == exitBug:
		return exitBug
	case errors.As(context.Cause(ctx), &interrupt):
		// A failure after a signal is most often its consequence.
		return interrupt.exitCode()
	case errors.As(err, &shown):
		return shown.code
	case exit != nil:
		return exit.code
	case errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	case errors.As(err, &core):
		return exitEnvironment
	}
	return exitFailed
}

// warn prints a warning, which does not keep the command from running.
func (a *app) warn(text string) { fmt.Fprintf(a.stderr, "rdmarun: warning: %s\n", printable.Log(text)) }

// printError writes err and its hints the way every command does; of joined errors each.
func printError(w io.Writer, err error) {
	if list := joined(err); list != nil {
		for _, each := range list {
			printError(w, each)
		}
		return
	}
	if shown := (reportedError{}); errors.As(err, &shown) {
		return
	}
	fmt.Fprintf(w, "rdmarun: %s\n", printable.Log(err.Error()))
	for {
		hint := (*hintError)(nil)
		if !errors.As(err, &hint) {
			return
		}
		fmt.Fprintf(w, "  hint: %s\n", printable.Log(hint.hint))
		err = hint.err
	}
}

// joined are the errors that errors.Join has put together; nil for any other error.
func joined(err error) []error {
	several, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	list := several.Unwrap()
	texts := make([]string, len(list))
	for i, each := range list {
		texts[i] = each.Error()
	}
	if err.Error() != strings.Join(texts, "\n") {
		return nil // of fmt.Errorf, with words of its own
	}
	return list
}

// recoverPanic turns a panic of a command into exit code 70 and a report in a file. So a user has something to send,
// and a script can distinguish a bug from a failed test. Deferred, hence the pointer.
func (a *app) recoverPanic(code *exitCode) {
	value := recover()
	if value == nil {
		return
	}
	*code = exitBug
	report := a.crashReport(value, debug.Stack())
	fmt.Fprintf(a.stderr, "rdmarun: internal error: %v\n", value)
	path, err := writeCrashReport(report)
	if err != nil {
		fmt.Fprintf(a.stderr, "rdmarun: the report could not be written (%v), so here it is:\n%s", err, report)
		return
	}
	fmt.Fprintf(a.stderr, "  hint: this is a bug in rdmarun; please report it with the file %s\n", path)
}

func (a *app) crashReport(value any, stack []byte) string {
	return fmt.Sprintf("%spanic: %v\n\n%s", buildReport(strings.Join(a.args, " ")), value, stack)
}

// buildReport is the beginning of every report of a crash.
func buildReport(arguments string) string {
	build := buildVersion()
	return fmt.Sprintf("rdmarun %s (%s, %s/%s)\narguments: %q\n",
		build.Version, build.Go, build.OS, build.Arch, arguments)
}

func writeCrashReport(report string) (path string, err error) {
	file, err := os.CreateTemp("", "rdmarun-crash-*.txt")
	if err != nil {
		return "", err
	}
	defer file.Close()
	_, err = file.WriteString(report)
	return file.Name(), err
}
