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
	"rdmarun/host/scenario"
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
		usage += ", or also other files, the environment and programs (strict)"
	}
	command.Flags().Var(f, "sandbox", usage)
	completeFlag(command, "sandbox", cobra.FixedCompletions(f.choices, cobra.ShellCompDirectiveNoFileComp))
}

func (f *sandboxFlag) mode() sandbox.Mode { return sandbox.Mode(f.value) }

// enter restricts the process to files, and drops the environment but for what this command reads, where the mode is
// strict. The process begins anew in it, so nothing is open yet.
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

// enterAgent restricts an agent. Its controller sends all files of its runs into memory.
func (f *sandboxFlag) enterAgent(a *app, command *cobra.Command) error {
	if f.mode() != sandbox.Strict {
		return nil
	}
	files, err := f.guestFiles(a, nil, &traceFlags{})
	if err != nil {
		return err
	}
	if engine, err := guest.Engine(); err == nil { // without one, the first script reports what is missing
		files.Read = append(files.Read, engine)
	}
	return f.enter(a, command, files)
}

// confine is what a run of scenarios does before its first guest.
func (f *sandboxFlag) confine(a *app) func() error {
	return func() error { return f.filter(a, true) }
}

// filter drops system calls, once nothing but guests is to run.  starts: the process starts itself, to compile a guest
// or to write the reports after a crash.
func (f *sandboxFlag) filter(a *app, starts bool) error {
	if !a.confines {
		return nil
	}
	if err := sandbox.Filter(f.mode(), starts); err != nil {
		return withExit(exitEnvironment, fmt.Errorf("--sandbox %s: %w", f.value, err))
	}
	return nil
}

// The variables that a command keeps in the mode strict in addition to those of its flags. They are for paths of
// files, for the terminal, for Go's runtime, for sanitizers, and for the libraries of --provider verbs.
var (
	keptNames = []string{
		"HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR", "TERM", "COLUMNS", "NO_COLOR",
		"CLICOLOR_FORCE", "LANG", "TZ", "LD_LIBRARY_PATH",
		"CI", "GITHUB_ACTIONS", "GODEBUG", "GOGC", "GOMEMLIMIT", "GOMAXPROCS", "GORACE", "GOTRACEBACK",
		guest.CacheVariable, guest.EngineVariable,
	}
	keptPrefixes = []string{parameterPrefix, "LC_", "IBV_", "RDMAV_", "MLX4_", "MLX5_"}
)

// keptVariables returns which variables a command needs.
func keptVariables(command *cobra.Command) func(string) bool {
	kept := slices.Clone(keptNames)
	command.Flags().VisitAll(func(flag *pflag.Flag) { kept = append(kept, environmentName(flag.Name)) })
	return func(name string) bool {
		return slices.Contains(kept, name) ||
			slices.ContainsFunc(keptPrefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
	}
}

// cache is the folder of the cache of compiled guests; "" is the user's own.
//
// A guest that escapes can read the cache's key and write to the cache, and what is there is run.  So strict has a
// cache of its own: what such a guest leaves there is run under strict only.
func (f *sandboxFlag) cache(a *app) string {
	folder := a.env[guest.CacheVariable]
	if f.mode() != sandbox.Strict {
		return folder
	}
	if folder == "" {
		var err error
		if folder, err = guest.DefaultCacheDir(); err != nil {
			return "" // nothing is kept
		}
	}
	return filepath.Join(folder, string(sandbox.Strict))
}

// guestFiles are what a run of these guests may use. It creates the cache and the file of the trace, because a rule of
// landlock cannot name a file that does not exist.
func (f *sandboxFlag) guestFiles(a *app, paths []string, trace *traceFlags) (sandbox.Files, error) {
	var files sandbox.Files
	for _, path := range paths {
		files.Read = append(files.Read, guest.CodeOf(path).Files()...)
	}
	if slices.ContainsFunc(paths, guest.IsScript) {
		engine, err := guest.Engine()
		if err != nil {
			return files, withExit(exitEnvironment, err)
		}
		files.Read = append(files.Read, engine)
	}
	if cache := f.cache(a); cache != "" {
		// Another user may own a folder above, and have put a link there.
		if err := os.MkdirAll(filepath.Join(cache, "guests"), 0o700); err == nil {
			files.Own = []sandbox.Own{{Above: filepath.Dir(cache), Path: filepath.Join(filepath.Base(cache), "guests")}}
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

// madeFolder is a folder, made if need be; none if it cannot be.
func madeFolder(path string) []string {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil
	}
	return []string{path}
}

// checkSandbox refuses a mode that the run cannot have.
func (f *runFlags) checkSandbox() error {
	if f.sandbox.mode() == sandbox.Strict && f.lab.active() {
		return withHint(usageError(
			"--sandbox strict: guests run on the hosts of the lab, and this process starts programs to reach them",
		),
			"leave --sandbox out here: RDMARUN_SANDBOX=strict in the environment of an agent restricts that")
	}
	return nil
}

// enter restricts the process of a run, where the mode is strict, to what these scenarios and the flags name.
func (f *runFlags) enter(a *app, command *cobra.Command, paths []string, checked *scenario.Checked) error {
	if f.sandbox.mode() != sandbox.Strict {
		return nil
	}
	paths, err := scenarioPaths(paths)
	if err != nil {
		return err
	}
	needed := slices.Clone(paths)
	for _, each := range checked.Scenarios {
		if each.Located() != each.Path {
			return withHint(
				usageError("--sandbox strict: %s is in a pack, which is unpacked for the run", each.Path),
				"run the files that it was made of",
			)
		}
		if each.Compiled.Programs {
			return withHint(
				usageError("--sandbox strict: %s starts native programs, which a restricted process cannot", each.Path),
				"leave --sandbox out, or play these roles by guests",
			)
		}
		needed = append(append(needed, each.Path), each.Needs()...)
	}
	files, err := f.sandbox.guestFiles(a, needed, &f.trace)
	if err != nil {
		return err
	}
	written, err := f.written(a)
	if err != nil {
		return err
	}
	files.Read = append(files.Read, f.params.file)
	if f.baselines.against != "" {
		files.Read = append(files.Read, recordsPath(f.baselines.against))
	}
	files.Write = append(files.Write, written...)
	if f.out.directory != "" {
		files.Link = madeFolder(f.out.directory) // "latest"
	}
	return f.sandbox.enter(a, command, files)
}

// written are the folders in which a run writes but that of --out-dir, and what is not a file there.  A report gets its
// name when it is whole, so its folder is written to.
func (f *runFlags) written(a *app) ([]string, error) {
	targets, err := parseTargets("--out", f.out.targets)
	if err != nil {
		return nil, err
	}
	var named, folders []string
	for _, target := range targets {
		if target.Path != "-" {
			named = append(named, target.Path)
		}
	}
	for _, path := range append(named, f.capture.path, f.log.file) {
		if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
			folders = append(folders, path) // a pipe, or a folder of reports
		} else if path != "" {
			folders = append(folders, filepath.Dir(path))
		}
	}
	if f.capture.onFailure != "" {
		folders = append(folders, madeFolder(f.capture.onFailure)...)
	}
	if f.baselines.save != "" {
		folders = append(folders, madeFolder(baselineFolder)...)
	}
	if last, err := lastRunPath(a); err == nil { // without a home nothing is kept
		folders = append(folders, madeFolder(filepath.Dir(last))...)
	}
	return folders, nil
}
