package main

import (
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"rdmarun/rdmacore"
	"rdmarun/sdk"
)

// TestWordsAreSuggested: each enumeration of the command line rejects a misspelled word, exits with the status of a
// usage error, and suggests the word.
func TestWordsAreSuggested(t *testing.T) {
	type words struct {
		known []string
		line  func(word string) []string
	}
	places := map[string]words{
		"sdk":    {sdk.Languages(), func(w string) []string { return []string{"sdk", w, "x"} }},
		"schema": {[]string{"scenario", "result", "config"}, func(w string) []string { return []string{"schema", w} }},
		"completion": {
			[]string{"bash", "fish", "powershell"}, func(w string) []string { return []string{"completion", w} },
		},
		"run --out": {formatNames(), func(w string) []string {
			return []string{"run", "../../scenarios/rping.yaml", "-o", w + "=x"}
		}},
		"report --to": {formatNames(), func(w string) []string {
			return []string{"report", "x", "--to", w + "=x"}
		}},
		"run --provider":  {rdmacore.Providers(), func(w string) []string { return []string{"run", "-P", w} }},
		"list --provider": {rdmacore.Providers(), func(w string) []string { return []string{"list", "-P", w} }},
		"run --repeat":    {[]string{"until-fail"}, func(w string) []string { return []string{"run", "--repeat", w} }},
		"perf":            {perfTestNames(), func(w string) []string { return []string{"perf", w} }},
		"agent --allow": {[]string{"soft", "guests"}, func(w string) []string {
			return []string{"agent", "--allow", w}
		}},
		"--trace": {functionNames(), func(w string) []string {
			return []string{"guest", "run", "--trace=" + w, "x.wasm"}
		}},
	}
	root := newRootCommand(testApp())
	for _, command := range allCommands(root) {
		path := strings.Fields(command.CommandPath())[1:]
		command.Flags().VisitAll(func(flag *pflag.Flag) {
			if choices, is := flag.Value.(*formatFlag); is {
				places[command.CommandPath()+" --"+flag.Name] = words{choices.choices, func(w string) []string {
					return slices.Concat(path, []string{"--" + flag.Name + "=" + w})
				}}
			}
		})
		if command.HasSubCommands() {
			names := childNames(command)
			before := append([]string{"help"}, path...)
			places["after "+command.CommandPath()] = words{names, func(w string) []string { return append(path, w) }}
			places["topic "+command.CommandPath()] = words{names, func(w string) []string { return append(before, w) }}
		}
	}
	for place, each := range maps.All(places) {
		t.Run(place, func(t *testing.T) {
			for _, word := range each.known {
				wrong := word + "x"
				var said strings.Builder
				a := testApp()
				a.args = each.line(wrong)
				a.stdout, a.stderr = io.Discard, &said
				if code := a.run(); code != exitUsage {
					t.Errorf("%q exits %d", a.args, code)
				}
				if !strings.Contains(said.String(), `did you mean "`+word+`"`) || !strings.Contains(said.String(), wrong) {
					t.Errorf("%q:\n%s", a.args, &said)
				}
			}
		})
	}
}

// TestNoArguments: a command without arguments rejects one, and does not take it for the name of a command.
func TestNoArguments(t *testing.T) {
	for _, name := range []string{"abi", "agent", "devices", "doctor", "version"} {
		var said strings.Builder
		a := testApp()
		a.args = []string{name, "wrong"}
		a.stdout, a.stderr = io.Discard, &said
		if code := a.run(); code != exitUsage {
			t.Errorf("%q exits %d", a.args, code)
		}
		for _, want := range []string{
			name + ` takes no arguments, and there is "wrong"`,
			`hint: remove "wrong", or see "rdmarun ` + name + ` --help" for its flags`,
		} {
			if !strings.Contains(said.String(), want) {
				t.Errorf("%q lacks %s:\n%s", a.args, want, &said)
			}
		}
	}
}

func childNames(command *cobra.Command) []string {
	var names []string
	for _, child := range command.Commands() {
		if !child.Hidden {
			names = append(names, child.Name())
		}
	}
	return names
}
