package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const configLong = `Print the flags that the environment and the configuration set, each with its value and
where that comes from; with the name of a command all flags of that command, also those
that have their default.  Use it when a run does not do what its command line says.

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
			of, rest, err := command.Root().Find(args)
			if err != nil || len(rest) > 0 || len(args) > 0 && !of.Runnable() {
				return withHint(usageError("there is no command %q", strings.Join(args, " ")), "for example: rdmarun config run")
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

// configOptional marks commands that run whatever the configuration holds: they help to mend it.
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

// printConfig shows what counts for one command, or for the root what is set for any.
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
				rows = append(rows, configRow{name, setting.Values, fmt.Sprintf("%s:%d", setting.Span.File(), setting.Span.Line)})
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
