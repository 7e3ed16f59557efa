package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"rdmarun/host/scenario/verb"
)

// showVerb explains a verb with all that its row in the table has; between cells stand tabs.
func showVerb(w io.Writer, word string) bool {
	v := verb.NewTable().Lookup(word)
	if v == nil {
		return false
	}
	fmt.Fprintf(w, "%s: verb of the scenario language", v.Name)
	if v.Manual != "" {
		fmt.Fprintf(w, ", %s", v.Manual)
	}
	fmt.Fprintf(w, "\n  %s\n", v.Doc)
	if v.Capability != "" {
		fmt.Fprintf(w, "  It needs %s; without it the case is skipped.\n", v.Capability)
	}
	for i, argument := range v.Arguments {
		if i == 0 {
			fmt.Fprintln(w, "arguments:")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", argument.Name, argumentNotes(argument), argument.Doc)
		for _, field := range argument.Fields {
			fmt.Fprintf(w, "    .%s\t%s\t%s\n", field.Name, argumentNotes(field), field.Doc)
		}
	}
	for i, result := range v.Results {
		if i == 0 {
			fmt.Fprintln(w, "results, for expect and expressions:")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", result.Name, resultNotes(result), result.Doc)
	}
	return true
}

// argumentNotes are type, words, bounds and default in a few words.
func argumentNotes(argument verb.Argument) string {
	notes := argument.Type.String()
	if len(argument.Words) > 0 && len(argument.Words) <= 8 {
		notes = strings.Join(argument.Words, ", ")
		if argument.Type == verb.Words {
			notes = "a list of " + notes
		}
	}
	if argument.Min != 0 || argument.Max != 0 {
		notes += fmt.Sprintf(" (%s to %s)", bound(argument.Type, argument.Min), bound(argument.Type, argument.Max))
	}
	switch {
	case argument.Required:
		notes += ", required"
	case argument.Group != "":
		notes += ", one of: " + argument.Group
	case argument.Default != nil:
		notes += fmt.Sprintf(", default %v", argument.Default)
	}
	return notes
}

func bound(t verb.Type, n int64) string {
	if t == verb.Duration {
		return time.Duration(n).String()
	}
	return fmt.Sprint(n)
}

// resultNotes are the type of a result and what it must be unless a step says otherwise.
func resultNotes(r verb.Result) string {
	notes := r.Type.String()
	if r.Default != nil {
		notes += fmt.Sprintf(", expected: %v", r.Default)
	}
	return notes
}
