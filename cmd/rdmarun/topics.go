package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"rdmarun/host/output"
	show "rdmarun/host/output/terminal"
	"rdmarun/host/scenario/ast"
)

// topic is a help page, not a command: `rdmarun help NAME`.
type topic struct {
	name, short string
	text        func() string
}

// topics are the help pages that are not of commands.
func topics() []topic {
	return []topic{
		{"language", "The scenario language on one page", languageTopic},
		{"exit-codes", "What the exit codes mean", exitCodesTopic},
		{"environment", "Environment variables and files", func() string { return environmentTopic }},
		{"outputs", "Reports of a run, and what goes where", outputsTopic},
		{"perftest", "The flags of perftest, and what they are in perf", perftestTopic},
	}
}

func (t topic) command(*app) *cobra.Command {
	return &cobra.Command{Use: t.name, Short: t.short, Long: t.text()}
}

// languageBegins is the shortest possible scenario.
const languageBegins = `A scenario is a YAML file that says what several roles do, one step after another:

  rdmarun: v1
  params: {size: {type: size, default: 64}}
  roles:
    server: {buffers: {rx: {size: $(size), access: [LOCAL_WRITE]}}}
    client: {buffers: {tx: {size: $(size)}}}
  steps:
    - {role: server, create_ep: {passive: true, port: 7471}, as: listener}
    - {role: client, create_ep: {to: server, port: 7471}, as: ep}

A step has one verb ("rdmarun explain verb"), or one of the actions below, and
modifiers.  $(...) is an expression over parameters, results and buffers.
`

// unexpected is the rule of all expectations.
const unexpected = `An unexpected result fails: another status, an unmatched completion or event, an object that
cannot be freed, a threshold without a sample.`

// languageTopic is the language on one page: how it begins, and the words of files and steps.
func languageTopic() string {
	text, style := languageBegins, show.Style{Width: 88} // as wide as the text around
	for _, part := range []struct {
		title string
		words []ast.Key
	}{
		{"Keys of a file", ast.Keys("file")}, {"Actions other than verbs", ast.Keys("action")},
		{"Modifiers of a step", ast.Keys("step")},
	} {
		text += "\n" + part.title + ":\n"
		for _, word := range part.words {
			text += style.Fold(fmt.Sprintf("  %-14s%s", word.Name, word.Doc), 16) + "\n"
		}
	}
	return text + "\n" + unexpected + `

"rdmarun explain WORD" explains each word and shows a scenario with it, "rdmarun new"
writes files to begin with, and "rdmarun schema" is for editors.`
}

const environmentTopic = `Every flag can be set in the environment: --out-dir as RDMARUN_OUT_DIR.  An empty variable
counts as unset.  "rdmarun config" prints what is set, and where.

  RDMARUN_<FLAG>           a flag of any command
  RDMARUN_PARAM_<name>     a parameter of scenarios
  NO_COLOR                 no colours (no-color.org)
  CLICOLOR_FORCE           colours also where there is no terminal
  TERM=dumb                no colours
  GITHUB_ACTIONS=true      failures also as annotations of a pull request
  XDG_CONFIG_HOME          the user's configuration: rdmarun/config.yaml below it
  XDG_STATE_HOME           how cases ended, for --last-failed
  XDG_CACHE_HOME           compiled guests

The command line comes before the environment, that before ./rdmarun.yaml, that before
the user's configuration, and that before the default.`

// exitCodesTopic lists every code.
func exitCodesTopic() string {
	var long strings.Builder
	long.WriteString("Exit codes of rdmarun:\n")
	for _, row := range exitCodes {
		fmt.Fprintf(&long, "\n  %3d  %s", row.code, row.meaning)
	}
	long.WriteString(
		"\n\nWhen several apply, the exit code is the first of 70, 130, 143, 124, 4, 1, 6, 5, 0.\n\n" +
			"Otherwise guest run and exec exit with the code of the guest or the program.",
	)
	return long.String()
}

// outputsTopic lists every format.
func outputsTopic() string {
	var long strings.Builder
	long.WriteString(`Standard output is the result that was asked for, standard error progress, warnings and
errors.  "run" leaves reports with --out FORMAT=FILE, several if the flag is repeated;
- is standard output, and people's text then goes to standard error.
`)
	for _, format := range output.Formats() {
		fmt.Fprintf(&long, "\n  %-6s  %s", format.Name, format.What)
	}
	long.WriteString(`

jsonl is the record of truth: "rdmarun report FILE --to html=page.html" makes every other
format of it, later ("rdmarun schema result" describes it).  --out-dir keeps the reports of
each run in a folder of its own.  --format json of the other commands is for scripts, with
a version that is raised when a field changes its meaning.`)
	return long.String()
}
