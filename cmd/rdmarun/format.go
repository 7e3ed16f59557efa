package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// formatFlag is --format: one of a few words, the first being the default.
type formatFlag struct {
	value   string
	choices []string
}

func newFormatFlag(choices ...string) *formatFlag {
	return &formatFlag{value: choices[0], choices: choices}
}

func (f *formatFlag) String() string { return f.value }

func (f *formatFlag) Type() string { return strings.Join(f.choices, "|") }

// Set refuses a word that is not a choice, so that a command need not check.
func (f *formatFlag) Set(value string) error {
	if !slices.Contains(f.choices, value) {
		return fmt.Errorf("must be one of %s", strings.Join(f.choices, ", "))
	}
	f.value = value
	return nil
}

func (f *formatFlag) register(command *cobra.Command) {
	command.Flags().Var(f, "format", "output format")
	complete := cobra.FixedCompletions(f.choices, cobra.ShellCompDirectiveNoFileComp)
	if err := command.RegisterFlagCompletionFunc("format", complete); err != nil {
		panic(err) // the flag was defined a line above
	}
}
