package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/host/scenario/diag"
)

const configLong = `Print the flags that the environment and the configuration set, each with its value and
where that comes from.  Use it when a run does not do what its command line says.

A configuration is YAML with the names of flags, for all commands that have them:

  provider: verbs
  tags: "!slow"
  param: [count=100, size=4KiB]

The command line comes before the environment (RDMARUN_PROVIDER), that before
./rdmarun.yaml, and that before $XDG_CONFIG_HOME/rdmarun/config.yaml.`

func newConfigCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "config",
		Short: "Print what the environment and the configuration set",
		Long:  configLong,
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			return a.printConfig(flagNames(command.Root()))
		},
	}
}

// flagNames are those of all commands.
func flagNames(root *cobra.Command) map[string]bool {
	known := make(map[string]bool)
	for _, command := range allCommands(root) {
		command.Flags().VisitAll(func(flag *pflag.Flag) { known[flag.Name] = flag.Name != "help" })
	}
	return known
}

func (a *app) printConfig(known map[string]bool) error {
	files, err := a.configFiles()
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, name := range sortedNames(known) {
		if value := a.env[environmentName(name)]; value != "" && known[name] {
			fmt.Fprintf(table, "%s\t%s\t%s\n", name, value, environmentName(name))
			known[name] = false // what comes first counts
		}
	}
	for _, file := range files {
		for _, setting := range file.settings {
			if known[setting.Name] {
				fmt.Fprintf(table, "%s\t%s\t%s:%d\n", setting.Name, strings.Join(setting.Values, " "), file.path, setting.Line)
				known[setting.Name] = false
			}
		}
	}
	return table.Flush()
}

// check refuses names that no command has: a misspelled one would do nothing, silently.
func (f configFile) check(known map[string]bool) error {
	for _, setting := range f.settings {
		if _, isFlag := known[setting.Name]; !isFlag || setting.Name == "help" {
			err := usageError("%s:%d: no command has a flag %q", f.path, setting.Line, setting.Name)
			if hint := diag.DidYouMean(setting.Name, sortedNames(known)); hint != "" {
				err = withHint(err, hint)
			}
			return err
		}
	}
	return nil
}
