package main

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// flagGroup is a part of a long list of flags.
type flagGroup struct {
	title string
	names []string
}

// plainFlags is where cobra's usage lists the flags of a command.
const plainFlags = `Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}`

// groupFlags makes the help of a command list its flags in groups; those in none come last.  Call it once
// all flags are registered.
func groupFlags(command *cobra.Command, groups []flagGroup) {
	command.InitDefaultHelpFlag()
	grouped := make(map[string]bool)
	var text strings.Builder
	add := func(title string, flags *pflag.FlagSet) {
		flags.SortFlags = false
		if flags.HasAvailableFlags() {
			text.WriteString(title + ":\n" + flags.FlagUsages() + "\n")
		}
	}
	for _, group := range groups {
		flags := pflag.NewFlagSet(group.title, pflag.ContinueOnError)
		for _, name := range group.names {
			if flag := command.Flags().Lookup(name); flag != nil {
				flags.AddFlag(flag)
				grouped[name] = true
			}
		}
		add(group.title, flags)
	}
	rest := pflag.NewFlagSet("", pflag.ContinueOnError)
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if !grouped[flag.Name] {
			rest.AddFlag(flag)
		}
	})
	add("Other", rest)
	// The text is a template's: what looks like its code must not be any.
	literal := strings.ReplaceAll(strings.TrimRight(text.String(), "\n"), "{{", `{{"{{"}}`)
	command.SetUsageTemplate(strings.Replace(command.UsageTemplate(), plainFlags, literal, 1))
}
