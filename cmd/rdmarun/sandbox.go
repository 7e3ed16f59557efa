package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/host/guest"
	"rdmarun/host/ownfile"
	"rdmarun/host/sandbox"
)

// sandboxFlag is --sandbox.
type sandboxFlag struct{ formatFlag }

// newSandboxFlag has the modes that a command has, the first of which is the default.
func newSandboxFlag(modes ...sandbox.Mode) *sandboxFlag {
	words := make([]string, len(modes))
	for i, mode := range modes {
		words[i] = string(mode)
	}
	return &sandboxFlag{*newFormatFlag(words...)}
}

func (f *sandboxFlag) register(command *cobra.Command) {
	usage := "before the first guest starts, drop system calls that rdmarun never makes (default)"
	if slices.Contains(f.choices, string(sandbox.Strict)) {
		usage += ", or all access that the run does not need (strict)"
	}
	command.Flags().Var(f, "sandbox", usage)
	completeFlag(command, "sandbox", cobra.FixedCompletions(f.choices, cobra.ShellCompDirectiveNoFileComp))
}

func (f *sandboxFlag) mode() sandbox.Mode { return sandbox.Mode(f.value) }

// enter restricts the process to files, and drops the environment but for what this command reads, where the mode is strict.
// The process begins anew in it, so nothing is open yet.
func (f *sandboxFlag) enter(a *app, command *cobra.Command, files sandbox.Files) error {
	if !a.confines || f.mode() != sandbox.Strict {
		return nil
	}
	files.Read = append(files.Read, a.configPaths()...)
	if err := sandbox.Enter(sandbox.System().With(files), keptVariables(command)); err != nil {
		return withExit(exitEnvironment, fmt.Errorf("--sandbox strict: %w", err))
	}
	return nil
}

// confine is what a run of scenarios does before its first guest.
func (f *sandboxFlag) confine(a *app) func() error {
	return func() error { return f.filter(a) }
}

// filter drops system calls, once nothing but guests is to run.
func (f *sandboxFlag) filter(a *app) error {
	if !a.confines {
		return nil
	}
	if err := sandbox.Filter(f.mode()); err != nil {
		return withExit(exitEnvironment, fmt.Errorf("--sandbox %s: %w", f.value, err))
	}
	return nil
}

// The variables that a command keeps in the mode strict besides those of its flags: where files are, what a terminal shows, and
// what Go's runtime, sanitizers and the libraries of --provider verbs read.
var (
	keptNames = []string{
		"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR", "TERM", "COLUMNS", "NO_COLOR", "CLICOLOR_FORCE", "LANG", "TZ", "LD_LIBRARY_PATH",
		"GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GORACE", "GOTRACEBACK", guest.CacheVariable, guest.EngineVariable,
	}
	keptPrefixes = []string{"LC_", "IBV_", "RDMAV_", "MLX4_", "MLX5_"}
)

// keptVariables tells which variables a command needs.
func keptVariables(command *cobra.Command) func(string) bool {
	kept := slices.Clone(keptNames)
	command.Flags().VisitAll(func(flag *pflag.Flag) { kept = append(kept, environmentName(flag.Name)) })
	return func(name string) bool {
		return slices.Contains(kept, name) ||
			slices.ContainsFunc(keptPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
}

// guestFiles are what a run of this guest may use.  It makes what a rule must name, because landlock knows no names of files
// that do not exist: the cache, and the file of the trace.
func (a *app) guestFiles(path string, trace *traceFlags) (sandbox.Files, error) {
	files := sandbox.Files{Read: []string{path}}
	if guest.IsScript(path) {
		engine, err := guest.Engine()
		if err != nil {
			return files, withExit(exitEnvironment, err)
		}
		files.Read = append(files.Read, engine)
	}
	if cache, err := guest.DefaultCacheDir(); err == nil { // without one nothing is kept
		cache = filepath.Join(cache, "guests")
		if err := os.MkdirAll(cache, 0o700); err == nil {
			files.Write = append(files.Write, cache)
		}
	}
	if trace.path != "" {
		file, err := ownfile.Open(trace.path, os.O_WRONLY|os.O_CREATE, ownfile.Private)
		if err != nil {
			return files, withExit(exitEnvironment, err)
		}
		files.Write = append(files.Write, trace.path)
		return files, file.Close()
	}
	return files, nil
}
