package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/verb"
)

// showVerb explains a verb with all that its row in the table has; between cells stand tabs.
func showVerb(w io.Writer, word string) bool {
	v := verb.NewTable().Lookup(word)
	if v == nil {
		return showVerbsOf(w, word)
	}
	fmt.Fprintf(w, "%s: verb of the scenario language", v.Name)
	if v.Manual != "" {
		fmt.Fprintf(w, ", %s", v.Manual)
	}
	fmt.Fprintf(w, "\n  %s\n", v.Doc)
	if v.Capability != "" {
		fmt.Fprintf(w, "  It needs %s; without it the case is skipped.\n", v.Capability)
	}
	for i, row := range argumentRows(v) {
		if i == 0 {
			fmt.Fprintln(w, "arguments:")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", row.name, row.notes, row.doc)
	}
	for i, result := range v.Results {
		if i == 0 {
			fmt.Fprintln(w, "results, for expect and expressions:")
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\n", result.Name, resultNotes(result), result.Doc)
	}
	return true
}

// showVerbsOf lists the verbs that call a function of librdmacm or libibverbs.
func showVerbsOf(w io.Writer, function string) bool {
	if !strings.HasPrefix(function, "rdma_") && !strings.HasPrefix(function, "ibv_") {
		return false
	}
	function, _, _ = strings.Cut(function, "(")
	_, short, _ := strings.Cut(function, "_")
	found := false
	for _, v := range verb.NewTable().Verbs() {
		if !strings.Contains(v.Manual, function+"(") && v.Name != short {
			continue
		}
		if !found {
			fmt.Fprintf(w, "%s: function of %s; verbs of the scenario language that call it:\n", function, libraryOf(function))
		}
		found = true
		fmt.Fprintf(w, "  %s\t%s\n", v.Name, v.Doc)
	}
	return found
}

func libraryOf(function string) string {
	if strings.HasPrefix(function, "ibv_") {
		return "libibverbs"
	}
	return "librdmacm"
}

// longestWordList is how many words an explanation lists; those of longer lists are topics of their own.
const longestWordList = 16

// argumentRow is a line of a table of arguments.
type argumentRow struct{ name, notes, doc string }

// argumentRows are the arguments as a step writes them: the fields of a mapping behind it, and the forms of data that
// stands among the arguments instead of it.
func argumentRows(v *verb.Verb) []argumentRow {
	var rows []argumentRow
	for _, argument := range v.Arguments {
		if argument.Inline {
			for _, form := range compile.DataForms() {
				rows = append(rows, argumentRow{form.Name, argument.Doc, form.Doc})
			}
			continue
		}
		rows = append(rows, argumentRow{argument.Name, argumentNotes(argument), argument.Doc})
		for _, field := range fieldsOf(argument) {
			rows = append(rows, argumentRow{"  ." + field.Name, argumentNotes(field), field.Doc})
		}
	}
	return rows
}

// argumentNotes are type, words, bounds and default in a few words.
func argumentNotes(argument verb.Argument) string {
	notes := argument.Type.String()
	if len(argument.Words) > 0 && len(argument.Words) <= longestWordList {
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
		notes += ", default " + compile.Show(argument.Default, argument.Type)
	}
	return notes
}

func bound(t verb.Type, n int64) string {
	if t == verb.Duration {
		return quantity.Time(time.Duration(n))
	}
	if t == verb.Size {
		return quantity.Size(n)
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
