package main

import (
	"github.com/spf13/cobra"

	"rdmarun/schema"
)

const schemaLong = `Print the JSON Schema (2020-12) of scenario files, for an editor: it then completes
and documents the keys while you type, and marks what is misspelled.  Put a line at
the top of a scenario:

  # yaml-language-server: $schema=scenario.v1.json

"rdmarun validate" finds more: names, units and expressions are beyond a schema.`

func newSchemaCommand(a *app) *cobra.Command {
	topics := []string{"scenario"}
	return &cobra.Command{
		Use:         "schema [scenario]",
		Short:       "Print the JSON Schema of scenarios, for editors",
		Annotations: configOptional,
		Long:        schemaLong,
		Example:     "  rdmarun schema > scenario.v1.json",
		ValidArgs:   topics,
		Args:        cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.stdout.Write(schema.Scenario)
			return err
		},
	}
}
