package main

import (
	"github.com/spf13/cobra"

	"rdmarun/schema"
)

const schemaLong = `Print a JSON Schema (2020-12).

  scenario  of scenario files, for an editor: it completes and documents the keys while
            you type, and marks misspelled words
  result    of the records of "run --out jsonl=FILE", one a line
  config    of ./rdmarun.yaml

Put a line at the top of a scenario:

  # yaml-language-server: $schema=scenario.v1.json

"rdmarun validate" finds more: names, units and expressions are beyond a schema.`

func newSchemaCommand(a *app) *cobra.Command {
	kinds := []string{"scenario", "result", "config"}
	return &cobra.Command{
		Use:         "schema [scenario|result|config]",
		Short:       "Print the JSON Schema of scenarios, records or the configuration",
		Annotations: configOptional,
		Long:        schemaLong,
		Example:     "  rdmarun schema > scenario.v1.json\n  rdmarun schema result > result.v1.json",
		ValidArgs:   kinds,
		Args:        wordArgument(false, kinds...),
		RunE: func(_ *cobra.Command, args []string) error {
			text := schema.Scenario
			switch {
			case len(args) == 0:
			case args[0] == "result":
				text = schema.Result
			case args[0] == "config":
				text = schema.Config
			}
			_, err := a.stdout.Write(text)
			return err
		},
	}
}
