package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"rdmarun/host/ownfile"
	"rdmarun/host/program"
	"rdmarun/host/trace"
	"rdmarun/rdmacore"
)

const traceLong = `Show the calls that a program makes of libibverbs and librdmacm, as strace does for
system calls. Each call is a line: the time when it returned, its arguments with names
of flags and states, its result, and how long it took. Results that a call writes are in
braces behind it. Events and completions are shown with their status in words.

The program runs on the embedded provider, as with "rdmarun exec", or with -P verbs on
the system's libraries and a real device. A library that is preloaded in front of them
(LD_PRELOAD) records the calls, also of threads and of processes that the program
starts. Functions that verbs.h has inline (ibv_post_send, ibv_poll_cq, ibv_wr_*) are
recorded as well. Polls that find nothing are one line with their number.

Objects have numbers: qp#1 is the first queue pair of its process. A line that begins
with [PID] or [PID/TID] is of that process or thread.

-e selects calls by names of calls and groups, -c prints a table of all calls instead.
A program that makes calls faster than they can be read loses some of the data path. A
line has their number.

Calls of drivers' own functions (mlx5dv, efadv) are not seen, and neither are requests
that a program writes to its adapter by itself. Functions that a program looks up by
dlsym are not seen either. A line names such libraries.

The exit code is the program's, or 128 and its signal.`

const traceExample = `  rdmarun trace rping -c -a 127.0.0.1 -C 1
  rdmarun trace -e connection,events rping -s -a 127.0.0.1
  rdmarun trace -e '!poll' -o calls.txt ./server
  rdmarun trace -c ib_write_bw -R 127.0.0.1
  rdmarun trace -k -o calls.html ./server
  rdmarun trace -o calls.jsonl -P verbs rping -c -a 192.0.2.1 -C 1`

// traceProgramFlags are the flags of trace.
type traceProgramFlags struct {
	traced  tracedFlags
	filter  []string
	output  string
	ids     bool
	summary bool
	noData  bool
	nested  bool
	sites   bool
}

func newTraceCommand(a *app) *cobra.Command {
	var flags traceProgramFlags
	command := &cobra.Command{
		Use:     "trace [--] PROGRAM [ARGS...]",
		Short:   "Show the RDMA calls of a program",
		Long:    traceLong,
		Example: traceExample,
		Args:    cobra.MinimumNArgs(1),
		RunE:    func(_ *cobra.Command, args []string) error { return a.traceProgram(flags, args) },
	}
	set := command.Flags()
	flags.traced.register(command)
	set.StringArrayVarP(
		&flags.filter, "expression", "e", nil,
		"show these calls or groups (connection, events, device, memory, queue, data, poll), or !NAME: all others",
	)
	set.StringVarP(
		&flags.output, "output", "o", "",
		"write to this file (default: stderr), by the end of its name: .jsonl (JSON), .html (a page with a filter)",
	)
	set.BoolVarP(&flags.summary, "summary", "c", false, "print a table of calls at the end instead")
	set.BoolVarP(
		&flags.ids, "threads", "f", false, "show process and thread on each line (default: from the second on)",
	)
	set.BoolVar(&flags.noData, "no-data", false, "leave out posts and polls that do not fail")
	set.BoolVarP(&flags.sites, "sites", "k", false, "show the function and the line that made each call (cc -g)")
	set.BoolVar(&flags.nested, "nested", false, "show calls that the libraries make within others")
	groups, names := trace.FilterNames()
	completeFlag(
		command, "expression",
		cobra.FixedCompletions(append(groups, names...), cobra.ShellCompDirectiveNoFileComp),
	)
	return command
}

// tracedFlags are the flags of commands that run a program with the library of trace.
type tracedFlags struct {
	exec     execFlags
	provider string
	command  *cobra.Command
	ofSoft   []string // the flags that only soft has
}

func (f *tracedFlags) register(command *cobra.Command) {
	set := command.Flags()
	f.command = command
	f.exec.register(command)
	set.VisitAll(func(flag *pflag.Flag) { f.ofSoft = append(f.ofSoft, flag.Name) })
	set.SetInterspersed(false) // what follows the program's name is the program's
	registerProvider(command, &f.provider, rdmacore.Soft, "provider to run on (soft, verbs: the system's libraries)")
}

// check refuses an unknown provider, and flags that only soft has with another provider.
func (f *tracedFlags) check() error {
	for _, name := range f.ofSoft {
		if f.command.Flags().Changed(name) && f.provider != rdmacore.Soft {
			return usageError("--%s is of soft: leave it out with -P %s", name, f.provider)
		}
	}
	return checkProvider(f.provider)
}

// traceProgram runs a program, and shows its calls.
func (a *app) traceProgram(flags traceProgramFlags, args []string) error {
	if err := flags.traced.check(); err != nil {
		return err
	}
	filter, err := trace.ParseFilter(flags.filter)
	if err != nil {
		return usageError("--expression: %w", err)
	}
	run, err := a.prepareTraced(flags.traced, args)
	if err != nil {
		return err
	}
	out, closeOutput, err := a.traceOutput(flags.output)
	if err != nil {
		return err
	}
	shown := newTraceView(out, flags, filter, args)
	collector, err := a.collectCalls(run, trace.Options{
		Take: shown.take, Flush: shown.flush, Brief: flags.summary, Numbers: flags.summary, Nested: flags.nested,
	})
	if err != nil {
		return errors.Join(err, closeOutput())
	}
	status, err := a.runTraced("trace", run)
	collector.Close()
	err = errors.Join(err, shown.end(filepath.Base(run.path), status), closeOutput())
	if err != nil {
		return err
	}
	return reported(traceExit(status))
}

// tracedProgram is a program that is about to run.
type tracedProgram struct {
	path string
	args []string
	env  map[string]string
	pid  int // when it has started
}

// collectCalls has the calls of a program collected, which the caller runs by runTraced and ends by Close.
func (a *app) collectCalls(run *tracedProgram, options trace.Options) (*trace.Collector, error) {
	options.Warn = a.warn
	collector, err := trace.NewCollector(options)
	if err != nil {
		return nil, withExit(exitEnvironment, err)
	}
	run.env[trace.Variable] = collector.Setting()
	return collector, nil
}

func (a *app) prepareTraced(flags tracedFlags, args []string) (*tracedProgram, error) {
	path, err := findForExec(args[0])
	if err != nil {
		return nil, err
	}
	library, err := program.FindTraceLibrary(flags.exec.library)
	if err != nil {
		return nil, withExit(exitEnvironment, err)
	}
	env := maps.Clone(a.env)
	if flags.provider == rdmacore.Soft {
		soft, err := flags.exec.soft()
		if err != nil {
			return nil, err
		}
		soft.Trace = library
		env = soft.Environment(env)
	} else {
		program.Preload(env, library)
	}
	return &tracedProgram{path: path, args: args, env: env}, nil
}

// traceOutput opens the file of -o.
func (a *app) traceOutput(path string) (io.Writer, func() error, error) {
	if path == "" {
		return a.stderr, func() error { return nil }, nil
	}
	if path == "-" {
		return a.stdout, func() error { return nil }, nil
	}
	file, err := ownfile.Create(path, ownfile.Private)
	if err != nil {
		return nil, nil, withExit(exitEnvironment, err)
	}
	return file, func() error { return withExit(exitEnvironment, file.Close()) }, nil
}

// runTraced runs the program, and waits for it and for the processes that it has left behind. Signals of a terminal
// reach the program by themselves; others are passed on to it. Errors begin with the name of the command.
func (a *app) runTraced(name string, run *tracedProgram) (status syscall.WaitStatus, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, withExit(exitEnvironment, fmt.Errorf("adopt the program's processes: %w", err))
	}
	if a.releaseSignals != nil {
		a.releaseSignals() // the program decides what they mean
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(signals)

	command := exec.Command(run.path)
	command.Args = run.args
	command.Stdin, command.Stdout, command.Stderr = a.stdin, a.stdout, a.stderr
	command.Env = environmentPairs(run.env)
	if err := command.Start(); err != nil {
		return 0, withExit(exitNotRunnable, fmt.Errorf("%s %s: %w", name, run.path, err))
	}
	run.pid = command.Process.Pid
	ended := make(chan struct{})
	defer close(ended)
	foreground := isForeground()
	go func() {
		for {
			select {
			case s := <-signals:
				if !foreground || s == unix.SIGTERM || s == unix.SIGHUP {
					_ = command.Process.Signal(s)
				}
			case <-ended:
				return
			}
		}
	}()
	err = command.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return 0, withExit(exitEnvironment, fmt.Errorf("%s %s: %w", name, run.path, err))
	}
	status, _ = command.ProcessState.Sys().(syscall.WaitStatus)
	awaitOrphans()
	return status, nil
}

// awaitOrphans waits for processes that the program has left behind, as strace does.
func awaitOrphans() {
	for {
		var status unix.WaitStatus
		if _, err := unix.Wait4(-1, &status, 0, nil); err != nil && err != unix.EINTR {
			return
		}
	}
}

// isForeground reports whether a terminal sends its signals to this process, and so to the program as well.
func isForeground() bool {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer terminal.Close()
	group, err := unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

func traceExit(status syscall.WaitStatus) exitCode {
	if status.Signaled() {
		return exitCode(128 + int(status.Signal()))
	}
	return exitCode(status.ExitStatus())
}

// traceView is what shows calls: lines, JSON, a page, or a table.
type traceView struct {
	flags   traceProgramFlags
	filter  *trace.Filter
	lines   *trace.Lines
	records *trace.Records
	page    *trace.Page
	summary *trace.Summary
	out     io.Writer
	err     error
}

func newTraceView(out io.Writer, flags traceProgramFlags, filter *trace.Filter, args []string) *traceView {
	v := &traceView{flags: flags, filter: filter, out: out}
	options := trace.LineOptions{Processes: flags.ids, Sites: flags.sites}
	switch {
	case flags.summary:
		v.summary = trace.NewSummary()
	case strings.HasSuffix(flags.output, ".jsonl"):
		v.records = trace.NewRecords(out, flags.sites)
	case strings.HasSuffix(flags.output, ".html"):
		v.page = trace.NewPage(out, strings.Join(args, " "), options)
	default:
		v.lines = trace.NewLines(out, options)
	}
	return v
}

func (v *traceView) take(call *trace.Call) {
	isData := call.Group == "data" || call.Group == "poll"
	if !v.filter.Shows(call) || v.flags.noData && isData && !call.Failed() && call.Failures == 0 {
		return
	}
	switch {
	case v.summary != nil:
		v.summary.Take(call)
	case v.records != nil:
		v.records.Take(call)
	case v.page != nil:
		v.page.Take(call)
	default:
		v.lines.Take(call)
	}
}

func (v *traceView) flush() {
	if v.lines != nil {
		v.err = errors.Join(v.err, v.lines.Flush(false))
	}
}

// end completes the output.
func (v *traceView) end(name string, status syscall.WaitStatus) error {
	switch {
	case v.summary != nil:
		v.err = v.summary.Write(v.out)
	case v.records != nil:
		v.err = v.records.Flush(true)
	case v.page != nil:
		v.err = v.page.End(endOf(name, status))
	default:
		v.err = errors.Join(v.err, v.lines.Flush(true))
		fmt.Fprintf(v.out, "+++ %s +++\n", endOf(name, status))
	}
	return withExit(exitEnvironment, v.err)
}

// endOf says how a program has ended.
func endOf(name string, status syscall.WaitStatus) string {
	if status.Signaled() {
		return fmt.Sprintf("%s was ended by %s", name, unix.SignalName(status.Signal()))
	}
	return fmt.Sprintf("%s exited with %d", name, status.ExitStatus())
}
