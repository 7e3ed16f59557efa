package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"rdmarun/host/guest"
	"rdmarun/host/printable"
	"rdmarun/host/sandbox"
	"rdmarun/host/scenario/shell"
	"rdmarun/rdmacore"
)

const guestRunLong = `Run a WebAssembly guest: a WASI command (GOOS=wasip1,
--target=wasm32-wasi) that imports the functions of the ABI (docs/abi.md). Or run a
script in JavaScript, which calls the same functions by their names (guests/README.md).
Words after "--" are its arguments, and so are flags of Go tests: GOOS=wasip1
GOARCH=wasm go test -exec "rdmarun guest run".

The guest sees its arguments, the standard streams, the clock and random numbers; no
files, no sockets, no environment. At any end, all its objects are freed, and its peers
get DISCONNECTED.

--sandbox restricts the process, so that a guest that escapes from the engine can do
little. "default" drops system calls that rdmarun never makes (ptrace, mount, bpf, other
families of sockets and more). It also drops new memory that is writable and executable,
and privileges of set-user-ID programs, if the kernel can. "strict" also drops the
environment, the right to start programs, and all other files. The guest, its trace, the
configuration, a cache for this mode and the system's libraries and devices stay.
Networks stay open, and so do names, sizes and times of all files. "strict" fails if the
kernel has no landlock or seccomp ("rdmarun doctor" checks it).

The first SIGINT or SIGTERM asks the guest to end: its wait fails with ECANCELED.

The exit code is the guest's own (255 for one below 0 or above 255). It is 124 when the
guest exceeded --time, and 125 when it trapped. It is 126 when the file is not a guest
or needs what this host lacks. It is 2, with a message of rdmarun, when the file cannot
be compiled.`

// withTestFlags returns a command line with "--" before the flags of a test binary (-test.v). "go test -exec" puts
// those behind the module, and they are the guest's. No flag of rdmarun begins so.
func withTestFlags(args []string) []string {
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "-test.") })
	if len(args) < 2 || args[0] != "guest" || args[1] != "run" || at < 0 || slices.Contains(args[:at], "--") {
		return args
	}
	return slices.Insert(slices.Clone(args), at, "--")
}

func newGuestCommand(a *app) *cobra.Command {
	command := &cobra.Command{
		Use:   "guest",
		Short: "Run, inspect and compile WebAssembly guests",
		Args:  cobra.NoArgs,
	}
	command.AddCommand(newGuestRunCommand(a), newGuestInspectCommand(a), newGuestCompileCommand(a))
	return command
}

// guestFlags are the flags of guest run.
type guestFlags struct {
	provider string
	limits   guest.Limits
	// Those of limits that are sizes.
	memory, registered, output byteSize
	verbose                    bool
	trace                      traceFlags
	sandbox                    *sandboxFlag
	// Those of soft.
	link          *formatFlag
	fabric        string
	seed          seedFlag
	legal         legalFlag
	deterministic bool
}

// options are those of the provider; seed is what the guest's own random numbers are drawn from, nil for the host's.
func (f *guestFlags) options() (options []rdmacore.Option, seed *uint64, err error) {
	if f.provider != rdmacore.Soft {
		for _, each := range []struct {
			given bool
			name  string
		}{
			{f.link.value != rdmacore.LinkLocal, "link"}, {f.legal.Choices != 0, "legal"},
			{f.fabric != "", "fabric"}, {f.seed.value != nil, "seed"},
			{f.deterministic, "deterministic"},
		} {
			if each.given {
				return nil, nil, usageError("--%s: only provider soft has it", each.name)
			}
		}
		return nil, nil, nil
	}
	switch {
	case f.fabric != "" && rdmacore.CheckFabric(f.fabric) != nil:
		return nil, nil, usageError("--fabric: %w", rdmacore.CheckFabric(f.fabric))
	case f.fabric != "" && f.link.value != rdmacore.LinkUDP:
		return nil, nil, withHint(
			usageError("--fabric %s: programs reach each other on the link udp only", f.fabric), "add --link udp",
		)
	case f.deterministic && f.link.value == rdmacore.LinkUDP:
		return nil, nil, usageError("--deterministic: the link udp has the wall clock, and no run repeats there")
	}
	options = append(options, rdmacore.WithLink(f.link.value), rdmacore.WithLegal(f.legal.Legal))
	if f.fabric != "" {
		options = append(options, rdmacore.WithFabric(f.fabric))
	}
	if f.seed.value != nil {
		options = append(options, rdmacore.WithSeed(*f.seed.value))
	}
	if f.deterministic {
		if seed = f.seed.value; seed == nil {
			seed = new(uint64)
			options = append(options, rdmacore.WithSeed(*seed))
		}
		options = append(options, rdmacore.WithVirtualClock())
	}
	return options, seed, nil
}

func newGuestRunCommand(a *app) *cobra.Command {
	flags := guestFlags{
		memory: guest.DefaultMemory, registered: guest.DefaultRegistered, output: guest.DefaultOutput,
		sandbox: newSandboxFlag(sandbox.Default, sandbox.Strict, sandbox.Off),
	}
	command := &cobra.Command{
		Use:   "run FILE.wasm|FILE.js [-- ARGS...]",
		Short: "Run a guest",
		Long:  guestRunLong,
		Example: "  rdmarun guest run guests/hello/hello.wasm\n" +
			"  rdmarun guest run --provider verbs guests/pingpong.wasm -- --client 10.1.0.14 --size 4096",
		Args: cobra.MinimumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if flags.sandbox.mode() == sandbox.Strict {
				files, err := flags.sandbox.guestFiles(a, args[:1], &flags.trace)
				if err != nil {
					return err
				}
				if err := flags.sandbox.enter(a, command, files); err != nil {
					return err
				}
			}
			return runGuest(command.Context(), a, flags, args[0], args[1:])
		},
		ValidArgsFunction: completeGuests,
	}
	registerProvider(command, &flags.provider, rdmacore.Soft, providerUsage, autoProvider)
	command.Flags().DurationVar(
		&flags.limits.Time, "time", guest.DefaultTime, "limit of the time to compile and run (0: none)",
	)
	command.Flags().Var(
		&flags.memory, "memory",
		"how much memory it may have in all: linear memory, tables, RDMA objects with their rings and events",
	)
	command.Flags().Var(&flags.registered, "registered", "how many bytes its memory regions may have together")
	command.Flags().Int64Var(&flags.limits.Handles, "handles", guest.DefaultHandles, "how many objects it may have")
	command.Flags().Int64Var(
		&flags.limits.Files, "files", guest.DefaultFiles,
		"how many file descriptors its event channels and CQs may have",
	)
	command.Flags().Int64Var(&flags.limits.Ports, "ports", guest.DefaultPorts, "how many ports its endpoints may have")
	command.Flags().Var(&flags.output, "output", "how much it may write to its standard streams and its log")
	command.Flags().BoolVarP(&flags.verbose, "verbose", "v", false, "say what was compiled and what was freed")
	flags.link = registerLink(command, rdmacore.LinkLocal)
	registerLegal(command, &flags.legal)
	command.Flags().StringVar(
		&flags.fabric, "fabric", "",
		"on the link udp, connect to programs of this fabric too (rdmarun exec uses \"default\")",
	)
	command.Flags().Var(
		&flags.seed, "seed", "draw soft's random numbers from this, with --deterministic also the guest's",
	)
	command.Flags().BoolVar(
		&flags.deterministic, "deterministic", false,
		"repeat a run exactly: virtual clocks, dates from 2000-01-01 on, random numbers from --seed (default 0)",
	)
	completeFlag(command, "fabric", cobra.NoFileCompletions)
	flags.trace.register(command)
	flags.sandbox.register(command)
	return command
}

func completeGuests(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return []string{"wasm", "js"}, cobra.ShellCompDirectiveFilterFileExt
}

func runGuest(ctx context.Context, a *app, flags guestFlags, path string, args []string) (err error) {
	if extension := filepath.Ext(path); extension == ".yaml" || extension == ".yml" {
		return withHint(usageError("%s is a scenario, not a guest", path), "rdmarun run "+shell.Word(path))
	}
	if flags.provider, err = a.resolveProvider(flags.provider); err != nil {
		return err
	}
	options, seed, err := flags.options()
	if err != nil {
		return err
	}
	// A signal asks the guest to end, below; it does not take the ground from under it.
	life := context.WithoutCancel(ctx)
	config := guest.RuntimeConfig{CacheDir: flags.sandbox.cache(a), Compiler: guest.OwnCompiler(), Warn: a.warn}
	closeTrace, err := flags.trace.open(a, &config.Trace)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeTrace()) }()
	runtime, err := guest.New(life, config)
	if err != nil {
		return withExit(exitEnvironment, err)
	}
	defer func() { err = errors.Join(err, runtime.Close(life)) }()
	flags.limits.Memory, flags.limits.Registered, flags.limits.Output = int64(flags.memory), int64(flags.registered),
		int64(flags.output)
	if flags.limits.Time == 0 {
		flags.limits.Time = guest.NoTimeLimit
	}
	var script *guest.Script
	if guest.IsScript(path) {
		if script, err = guest.ReadScript(path); err != nil {
			return withExit(exitInvalid, err)
		}
		if path, err = guest.Engine(); err != nil {
			return withExit(exitEnvironment, err)
		}
	}
	compiling, began, cancel := flags.limits.Compiling(ctx)
	module, err := runtime.Compile(compiling, path)
	cancel()
	if err != nil {
		return withExit(guestErrorCode(err), err)
	}
	if flags.verbose {
		fmt.Fprintf(a.stderr, "rdmarun: compiled %s in %s\n", path, time.Since(began).Round(time.Millisecond))
	}
	provider, err := rdmacore.Open(flags.provider, options...)
	if err != nil {
		return withExit(exitEnvironment, err)
	}
	defer func() { err = errors.Join(err, provider.Close()) }()

	guestConfig := guest.Config{
		Provider: provider, Args: args, Limits: flags.limits, Began: began, Seed: seed,
		Stdin: a.stdin, Stdout: shownOn(a.stdout), Stderr: shownOn(a.stderr),
	}
	if script != nil {
		guestConfig = script.Configure(guestConfig)
	}
	if err := flags.sandbox.filter(a, false); err != nil {
		return err
	}
	provider.Clock().Enter() // of a virtual one the guest begins in its turn
	guest, err := runtime.Start(life, module, guestConfig)
	provider.Clock().Leave()
	if err != nil {
		return withExit(exitInvalid, err)
	}
	select {
	case <-guest.Done():
	case <-ctx.Done():
		guest.Stop(life)
	}
	return a.guestResult(flags, guest)
}

// shownOn is what a guest may write to w.  Nothing that it writes gives orders to a terminal; a file gets it as it is.
func shownOn(w io.Writer) io.Writer {
	if terminalWidth(w) == 0 {
		return w
	}
	return printable.NewWriter(w)
}

// guestErrorCode is the exit code for a module that Compile refused.
func guestErrorCode(err error) exitCode {
	var format *guest.FormatError
	var abi *guest.ABIError
	var compiler *guest.CompilerError
	switch {
	case errors.Is(err, guest.ErrCompileTime):
		return exitTimeout
	case errors.Is(err, context.Canceled):
		return exitTerminated
	case errors.As(err, &compiler):
		return exitNotCompiled
	case errors.As(err, &format), errors.As(err, &abi):
		return exitNotAGuest
	case errors.Is(err, fs.ErrNotExist):
		return exitInvalid
	}
	return exitEnvironment
}

// guestResult returns how a guest ended, unless it ended well.
func (a *app) guestResult(flags guestFlags, guest *guest.Guest) error {
	result := guest.Result()
	if flags.verbose && result.Freed.Total() != 0 {
		fmt.Fprintf(a.stderr, "rdmarun: freed for the guest: %s\n", result.Freed)
	}
	if result.Err != nil {
		fmt.Fprintf(a.stderr, "rdmarun: %s\n", printable.Log(fmt.Sprintf("%s: %v", guest.Name(), result.Err)))
	}
	return reported(exitCode(result.ExitCode))
}
