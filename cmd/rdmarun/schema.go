package main

import (
	"bytes"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/schema"
)

const schemaLong = `Print a JSON Schema (2020-12).

  scenario  of scenario files, for an editor: it then completes and documents the keys
            while you type, and marks what is misspelled
  result    of the records of "run --out jsonl=FILE", one a line
  config    of ./rdmarun.yaml

Put a line at the top of a scenario:

  # yaml-language-server: $schema=scenario.v1.json

"rdmarun validate" finds more: names, units and expressions are beyond a schema.`

func newSchemaCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "schema [scenario|result|config]",
		Short:       "Print the JSON Schema of scenarios, records or the configuration",
		Annotations: configOptional,
		Long:        schemaLong,
		Example:     "  rdmarun schema > scenario.v1.json\n  rdmarun schema result > result.v1.json",
		ValidArgs:   []string{"scenario", "result", "config"},
		Args:        cobra.MatchAll(cobra.MaximumNArgs(1), cobra.OnlyValidArgs),
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

// configSchema is the JSON Schema of rdmarun.yaml: a property for each flag of any command.
func configSchema(root *cobra.Command) ([]byte, error) {
	properties := make(map[string]map[string]any)
	known := flagNames(root)
	for _, command := range allCommands(root) {
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if known[flag.Name] && properties[flag.Name] == nil {
				properties[flag.Name] = flagSchema(flag)
			}
		})
	}
	var text bytes.Buffer
	err := printJSON(&text, map[string]any{
		"$schema": "https://json-schema.org/draft/2020-12/schema",
		"title":   "rdmarun configuration 1",
		"description": "Flags by their names, for all commands that have them: ./rdmarun.yaml and " +
			"$XDG_CONFIG_HOME/rdmarun/config.yaml.",
		"type":                 "object",
		"properties":           properties,
		"additionalProperties": false,
	})
	return text.Bytes(), err
}

// flagSchema is what a flag takes; a flag of several commands may have other words in each, so words are left to the
// flag.
func flagSchema(flag *pflag.Flag) map[string]any {
	one := map[string]any{"type": []string{"string", "number", "boolean"}}
	switch flag.Value.Type() {
	case "bool":
		one = map[string]any{"type": "boolean"}
	case "int":
		one = map[string]any{"type": "integer"}
	case "float64":
		one = map[string]any{"type": "number"}
	}
	if _, isList := flag.Value.(pflag.SliceValue); isList {
		one = map[string]any{"anyOf": []any{one, map[string]any{"type": "array", "items": one}}}
	}
	one["description"] = flag.Usage
	return one
}
