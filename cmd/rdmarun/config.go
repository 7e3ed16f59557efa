package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
)

const configLong = `Print the flags that the environment and the configuration set, each
with its value and its source. With the name of a command, print all flags of that
command, also those that have their default. Use it when a run does not do what its
command line says.

A configuration is YAML with the names of flags, for all commands that have them:

  provider: verbs
  tags: "!slow"
  param: [count=100, size=4KiB]

The command line comes before the environment (RDMARUN_PROVIDER), that before
./rdmarun.yaml, that before $XDG_CONFIG_HOME/rdmarun/config.yaml, and that before the
default.  What is wrong with a configuration is shown, and keeps most commands from
running.`

// configVersion is raised when a field of the JSON changes its meaning or goes away.
const configVersion = 1

// configRow is a flag that is set, and by what.
type configRow struct {
	Flag   string   `json:"flag"`
	Values []string `json:"values"`
	Origin string   `json:"origin"` // a variable, FILE:LINE, or default
}

// configList is what `config --format json` prints.
type configList struct {
	Version int         `json:"version"`
	Flags   []configRow `json:"flags"`
}

func newConfigCommand(a *app) *cobra.Command {
	format := newFormatFlag("table", "json")
	command := &cobra.Command{
		Use:         "config [COMMAND...]",
		Short:       "Print what the environment and the configuration set",
		Long:        configLong,
		Example:     "  rdmarun config\n  rdmarun config run\n  RDMARUN_PROVIDER=verbs rdmarun config --format json",
		Annotations: configOptional,
		RunE: func(command *cobra.Command, args []string) error {
			of, err := findCommand(command.Root(), args)
			if err == nil && len(args) > 0 && !of.Runnable() {
				err = usageError("%q has no flags of its own", strings.Join(args, " "))
			}
			if err != nil && !hasHint(err) {
				err = withHint(err, "for example: rdmarun config run")
			}
			if err != nil {
				return err
			}
			return a.printConfig(command.Root(), of, format.value)
		},
		ValidArgsFunction: func(command *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return commandNames(command.Root(), args), cobra.ShellCompDirectiveNoFileComp
		},
	}
	format.register(command)
	return command
}

// commandNames lists the commands that may follow those of a half-typed line.
func commandNames(root *cobra.Command, args []string) []string {
	of, rest, err := root.Find(args)
	if err != nil || len(rest) > 0 {
		return nil
	}
	var names []string
	for _, command := range of.Commands() {
		if !command.Hidden && (command.Runnable() || command.HasSubCommands()) {
			names = append(names, cobra.CompletionWithDesc(command.Name(), command.Short))
		}
	}
	return names
}

// configOptional marks commands that run even with a broken configuration: they help to repair it.
var configOptional = map[string]string{"configuration": "optional"}

// flagNames are those of all commands.
func flagNames(root *cobra.Command) map[string]bool {
	known := make(map[string]bool)
	for _, command := range allCommands(root) {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if flag.Name != "help" && flag.Name != "version" {
				known[flag.Name] = true
			}
		})
	}
	return known
}

// printConfig shows the flags in force for one command, or for the root those set for any.
func (a *app) printConfig(root, of *cobra.Command, format string) error {
	known := flagNames(root)
	c := a.readConfiguration(known)
	rows := a.configRows(known, c)
	if of != root {
		rows = rowsOf(of, rows)
	}
	err := printConfigRows(a.stdout, rows, format)
	if err == nil {
		err = a.settingsErrors(c.wrong)
	}
	return err
}

// configRows are the flags that are set, by name; of several origins the first counts.
func (a *app) configRows(known map[string]bool, c *configuration) []configRow {
	rows := []configRow{}
	for _, name := range sortedNames(known) {
		if value := a.env[environmentName(name)]; value != "" {
			rows = append(rows, configRow{name, []string{value}, environmentName(name)})
			continue
		}
		for _, setting := range c.settings {
			if setting.Name == name {
				rows = append(rows, configRow{
					name, setting.Values, fmt.Sprintf("%s:%d", setting.Span.File(), setting.Span.Line),
				})
				break
			}
		}
	}
	return rows
}

// rowsOf are all flags of a command: those of rows, and the others with their defaults.
func rowsOf(command *cobra.Command, rows []configRow) []configRow {
	set := make(map[string]configRow, len(rows))
	for _, row := range rows {
		set[row.Flag] = row
	}
	all := []configRow{}
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		row, isSet := set[flag.Name]
		switch {
		case flag.Name == "help":
			return
		case !isSet:
			row = configRow{flag.Name, []string{flag.DefValue}, "default"}
			if _, isList := flag.Value.(pflag.SliceValue); isList {
				row.Values = []string{}
			}
		}
		all = append(all, row)
	})
	return all
}

func printConfigRows(w io.Writer, rows []configRow, format string) error {
	if format == "json" {
		return printJSON(w, configList{Version: configVersion, Flags: rows})
	}
	table := newTable(w)
	for _, row := range rows {
		// The tabwriter holds everything back; its Flush reports what a write here would.
		fmt.Fprintf(table, "%s\t%s\t%s\n", row.Flag, orDash(strings.Join(row.Values, " ")), row.Origin)
	}
	return table.Flush()
}

// projectConfig is the configuration of a folder, in the folder of its scenarios.
const projectConfig = "rdmarun.yaml"

// configuration is the content of the files of flags, in the order of precedence: the folder's, then the user's.  Each
// has names of flags, without dashes, and values; a list for a flag that may be given several times.
type configuration struct {
	settings []scenario.Setting
	// wrong are the errors in it.  Most commands do not run with a configuration that has any.
	wrong *diag.List
}

// configPaths are where the files may be.
func (a *app) configPaths() []string {
	paths := []string{projectConfig}
	user := a.env["XDG_CONFIG_HOME"]
	if !filepath.IsAbs(user) { // the XDG specification has relative paths ignored
		if a.env["HOME"] == "" {
			return paths
		}
		user = filepath.Join(a.env["HOME"], ".config")
	}
	return append(paths, filepath.Join(user, "rdmarun", "config.yaml"))
}

// readConfiguration reads the files that exist.  A name that no command has is an error: a misspelled flag would have
// no effect, silently.
func (a *app) readConfiguration(known map[string]bool) *configuration {
	c := &configuration{wrong: &diag.List{}}
	for _, path := range a.configPaths() {
		switch _, err := os.Stat(path); {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			continue
		case err != nil && path != projectConfig:
			// For example in a container, under the number of a user that has no home: such a user has set nothing.
			a.warn(fmt.Sprintf("the configuration cannot be looked for, and is left out: %v", err))
			continue
		}
		settings, wrong := scenario.ReadSettings(path)
		for _, d := range wrong.Sorted() {
			c.wrong.Add(d)
		}
		for _, setting := range settings {
			if known[setting.Name] {
				c.settings = append(c.settings, setting)
				continue
			}
			c.wrong.Report(diag.UnknownKey, setting.Span, "no command has a flag %q", setting.Name).
				WithHint("%s", diag.DidYouMean(setting.Name, sortedNames(known)))
		}
	}
	return c
}

// apply sets the flags that are not set yet.  A key that is a flag of another command is left alone.
func (c *configuration) apply(flags *pflag.FlagSet) {
	for _, setting := range c.settings {
		flag := flags.Lookup(setting.Name)
		if flag == nil || flag.Changed {
			continue
		}
		for i, value := range setting.Values {
			if err := flags.Set(setting.Name, value); err != nil {
				problem := c.wrong.Report(
					diag.WrongType, setting.Spans[i], "%s: %s", setting.Name, reasonOf(flag, value, err),
				)
				if hint := (*hintError)(nil); errors.As(err, &hint) {
					problem.WithHint("%s", hint.hint)
				}
			}
		}
	}
}

// reasonOf is a flag's own error about a value.
func reasonOf(flag *pflag.Flag, value string, err error) error {
	var number *strconv.NumError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &number):
		return fmt.Errorf("%q is not a number that --%s can have", value, flag.Name)
	case errors.As(err, &invalid):
		return invalid.Unwrap()
	}
	return err
}

// flagsFromEnvironment sets every flag that the command line left alone from its variable: a flag
// --out-dir from RDMARUN_OUT_DIR.  An empty variable counts as unset.
func flagsFromEnvironment(flags *pflag.FlagSet, env map[string]string) error {
	var first error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := environmentName(flag.Name)
		value := env[name]
		if flag.Changed || value == "" || flag.Name == "help" || first != nil {
			return
		}
		if err := flags.Set(flag.Name, value); err != nil {
			first = fmt.Errorf("environment variable %s: %w", name, err)
		}
	})
	return first
}

func environmentName(flag string) string {
	return "RDMARUN_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}
