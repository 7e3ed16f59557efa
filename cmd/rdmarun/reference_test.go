package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/verb"
)

var update = flag.Bool("update", false, "rewrite what is generated")

// testApp is an app with commands that tests look at, and do not run.
func testApp() *app { return &app{env: map[string]string{}, commands: commandConstructors} }

// TestReferenceIsUpToDate finds a command, verb or code that changed without its documentation.
func TestReferenceIsUpToDate(t *testing.T) {
	root := newRootCommand(testApp())
	files, err := referenceFiles(root)
	if err != nil {
		t.Fatal(err)
	}
	config, err := configSchema(root)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string][]byte{"../../schema/config.v1.json": config}
	for _, file := range files {
		kept[filepath.Join("../../docs/reference", file.name)] = file.text
	}
	for path, want := range kept {
		if *update {
			if err := os.WriteFile(path, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, want) {
			t.Errorf("%s is not what the tables make (%v): run go generate ./cmd/rdmarun", path, err)
		}
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

// TestReadmeLinksTheReference: readers do not find a page without a link.
func TestReadmeLinksTheReference(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := referenceFiles(newRootCommand(testApp()))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !bytes.Contains(readme, []byte("(docs/reference/"+file.name+")")) {
			t.Errorf("README does not link %s", file.name)
		}
	}
}

// TestReferenceIsComplete looks for every row of the tables in their pages.
func TestReferenceIsComplete(t *testing.T) {
	root := newRootCommand(testApp())
	cli := cliReference(root)
	for name := range flagNames(root) {
		if !bytes.Contains(cli, []byte("`--"+name+"`")) {
			t.Errorf("the reference lacks the flag --%s", name)
		}
	}
	verbs, codes := verbReference(), codeReference()
	for _, v := range verb.NewTable().Verbs() {
		if !bytes.Contains(verbs, []byte("\n## "+v.Name+"\n")) {
			t.Errorf("the reference lacks the verb %s", v.Name)
		}
	}
	for code := range diag.Titles() {
		if !bytes.Contains(codes, []byte("| "+code+" |")) {
			t.Errorf("the reference lacks the code %s", code)
		}
	}
}

// TestFlagsOfRunAreGrouped wants a flag of run in one group of its help, and no group of flags there are not.
func TestFlagsOfRunAreGrouped(t *testing.T) {
	command := newRunCommand(testApp())
	grouped := make(map[string]int)
	for _, group := range runGroups {
		for _, name := range group.names {
			grouped[name]++
			if command.Flags().Lookup(name) == nil {
				t.Errorf("group %s has --%s, and run has not", group.title, name)
			}
		}
	}
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if flag.Name != "help" && grouped[flag.Name] != 1 {
			t.Errorf("--%s is in %d groups of runGroups", flag.Name, grouped[flag.Name])
		}
	})
}
