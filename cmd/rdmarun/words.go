package main

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/shell"
)

// maxChoices is how many words an error lists in its own line.
const maxChoices = 12

// oneOf rejects a word that is none of those that the command line knows in its place.  Every enumeration of the
// command line uses it, so that each rejected word gets a suggestion.
func oneOf(word string, known []string) error {
	switch {
	case slices.Contains(known, word):
		return nil
	case len(known) > maxChoices:
		return withHint(fmt.Errorf("%q is unknown", word), diag.OneOf(word, known))
	}
	return withHint(
		fmt.Errorf("must be one of %s, not %q", strings.Join(known, ", "), word), diag.DidYouMean(word, known),
	)
}

// wordArgument is a check of a command's arguments: one word, and nothing more.
func wordArgument(required bool, known ...string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 && !required:
			return nil
		case len(args) != 1:
			return usageError("%s takes one of %s", command.Name(), strings.Join(known, ", "))
		}
		if err := oneOf(args[0], known); err != nil {
			return usageError("%s: %w", command.Name(), err)
		}
		return nil
	}
}

// noArguments is the check of a command without arguments.  Cobra's own takes an argument for a command of that name.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return withHint(
		usageError("%s takes no arguments, and there is %q", command.Name(), args[0]),
		fmt.Sprintf("remove %q, or see %q for its flags", args[0], command.CommandPath()+" --help"),
	)
}

// misspelledSelection is the word of a selection that no case has, and a hint to what it was meant to be.  The hint is
// empty where each word is known, or nothing is near.
func misspelledSelection(scenarios []scenario.Scenario, selection *scenario.Selection) (why, hint string) {
	var known, ids, titles, words []string
	for _, s := range scenarios {
		for _, c := range s.Compiled.Cases {
			known, ids = append(known, c.Tags...), append(ids, c.ID)
			title := record.CaseTitle(c.ID, s.Path, c.Name)
			titles = append(titles, title)
			words = append(words, strings.FieldsFunc(title, func(r rune) bool {
				return !unicode.IsLetter(r) && !unicode.IsNumber(r) && r != '_' && r != '-'
			})...)
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, tag := range selection.Tags.Words() {
		if !slices.Contains(known, tag) && len(known) > 0 {
			return fmt.Sprintf("no case has the tag %q", tag), diag.OneOf(tag, known)
		}
	}
	all := strings.ToLower(strings.Join(titles, "\n"))
	slices.Sort(words)
	words = slices.Compact(words)
	for _, word := range selection.Words.Words() {
		if !strings.Contains(all, strings.ToLower(word)) {
			return fmt.Sprintf("no id or name has the word %q", word), diag.DidYouMean(word, words)
		}
	}
	for _, pattern := range selection.IDs {
		found, err := scenario.Select(scenarios, scenario.Selection{IDs: []string{pattern}})
		if near := nearestID(pattern, ids); near != "" && err == nil && len(found) == 0 {
			return fmt.Sprintf("no case has the id %q", pattern), "did you mean --id " + shell.Word(near) + "?"
		}
	}
	return "", ""
}

// nearestID is the id that a pattern was meant to be, or "".  The pattern may lack the folder, the file, or the values
// of the matrix.
func nearestID(pattern string, ids []string) string {
	word := strings.TrimLeft(pattern, "*?/:")
	for _, form := range []func(id string) string{
		func(id string) string { return id },
		path.Base,
		func(id string) string { _, name, _ := strings.Cut(id, "::"); return name },
		func(id string) string { whole, _, _ := strings.Cut(id, "["); return whole },
	} {
		forms, of := make([]string, len(ids)), make(map[string]string, len(ids))
		for i, id := range ids {
			forms[i] = form(id)
			if of[forms[i]] == "" {
				of[forms[i]] = id
			}
		}
		if near := diag.Suggest(word, forms); near != "" {
			return of[near]
		}
	}
	return ""
}

// hasHint reports whether an error says what to do.
func hasHint(err error) bool {
	hint := (*hintError)(nil)
	return errors.As(err, &hint)
}

// findCommand is the command or the topic that words name.  It rejects a word that is none.
func findCommand(root *cobra.Command, words []string) (*cobra.Command, error) {
	command := root
	for _, word := range words {
		var names []string
		var next *cobra.Command
		for _, child := range command.Commands() {
			if !child.Hidden {
				names = append(names, child.Name())
			}
			if child.Name() == word || child.HasAlias(word) {
				next = child
			}
		}
		if next == nil {
			place := strings.TrimSpace(strings.TrimPrefix(command.CommandPath(), root.Name()))
			return nil, unknownCommand(place, word, names)
		}
		command = next
	}
	return command, nil
}

// unknownCommand is the error for a word that no command, and no topic, has as its name; place is the command before
// it.
func unknownCommand(place, word string, names []string) error {
	err := usageError("unknown command %q", strings.TrimSpace(place+" "+word))
	if len(names) == 0 {
		return withHint(err, fmt.Sprintf("%q has no commands of its own", place))
	}
	near := diag.DidYouMean(word, names)
	if near == "" && place != "" {
		near = diag.ThereAre(names)
	}
	return withHint(err, near)
}

// checkCommand rejects a command line that begins with an unknown command.  Cobra prints help and exits with 0 for one
// behind a group of commands such as guest.
func checkCommand(root *cobra.Command, args []string) error {
	if len(args) > 0 && strings.HasPrefix(args[0], "__") {
		return nil // the shell's request for completions, which cobra adds
	}
	command, rest, _ := root.Find(args) // the error is that the first word of the rest is unknown
	if command.Runnable() || !command.HasSubCommands() {
		return nil
	}
	at := slices.IndexFunc(rest, func(word string) bool { return !strings.HasPrefix(word, "-") })
	if at < 0 {
		return nil
	}
	_, err := findCommand(root, append(strings.Fields(command.CommandPath())[1:], rest[at]))
	return err
}

// strictHelp makes "rdmarun help WORD" reject a word that is neither a command nor a topic.
func strictHelp(root *cobra.Command) error {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return err
	}
	show := help.Run
	help.Run = nil
	help.RunE = func(command *cobra.Command, args []string) error {
		if _, err := findCommand(root, args); err != nil {
			if !hasHint(err) {
				err = withHint(err, "\"rdmarun help\" lists the commands and topics")
			}
			return err
		}
		show(command, args)
		return nil
	}
	return nil
}
