package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker (-ldflags "-X main.version=..."); nothing else writes it.
var version string

// buildInfo is what `version --format json` prints.
type buildInfo struct {
	Version string `json:"version"`
	Commit  string `json:"commit,omitempty"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

// buildVersion returns what this binary was built from: the linker's value first, the module system's
// (a `go install` of a release) second.
func buildVersion() buildInfo {
	info := buildInfo{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	if build, ok := debug.ReadBuildInfo(); ok {
		if info.Version == "" {
			info.Version = build.Main.Version
		}
		for _, setting := range build.Settings {
			if setting.Key == "vcs.revision" {
				info.Commit = setting.Value
			}
		}
	}
	if info.Version == "" {
		info.Version = "(devel)"
	}
	return info
}

func newVersionCommand(a *app) *cobra.Command {
	format := newFormatFlag("text", "json")
	command := &cobra.Command{
		Use:         "version",
		Short:       "Print the version of rdmarun",
		Annotations: configOptional,
		Args:        noArguments,
		RunE: func(*cobra.Command, []string) error {
			return printVersion(a.stdout, buildVersion(), format.value)
		},
	}
	format.register(command)
	return command
}

func printVersion(w io.Writer, info buildInfo, format string) error {
	if format == "json" {
		return printJSON(w, info)
	}
	_, err := fmt.Fprintf(w, "rdmarun %s (%s, %s/%s)\n", info.Version, info.Go, info.OS, info.Arch)
	return err
}

// printJSON writes a value as JSON that a person can read too.
func printJSON(w io.Writer, value any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}
