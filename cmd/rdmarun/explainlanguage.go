package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/example"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/standard"
	"rdmarun/host/scenario/verb"
)

// languageTable is a table of words of the scenario language.
type languageTable struct {
	// name is a topic of `rdmarun explain`, title what a list of its words is headed by.
	name, title string
	words       []ast.Key
	// kind is what one of the words is.
	kind string
	// example is a word with an example that also shows the words of the table without one.
	example string
}

// languageTables are the tables of the words in mappings, expressions and checks.
func languageTables() []languageTable {
	var tables []languageTable
	for _, mapping := range ast.Mappings() {
		kind := "key of " + mapping.Of
		switch mapping.Name {
		case "action":
			kind = "what a step can do that has no verb"
		case "type":
			kind = "type of parameters"
		}
		tables = append(tables, languageTable{mapping.Name, kind, mapping.Keys, kind, ""})
	}
	var operators, functions, units []ast.Key
	for _, word := range expression.Operators() {
		operators = append(operators, ast.Key(word))
	}
	for _, word := range expression.Functions() {
		functions = append(functions, ast.Key(word))
	}
	for _, word := range quantity.Units() {
		units = append(units, ast.Key(word))
	}
	var fragments []ast.Key
	for _, name := range standard.Names() {
		fragments = append(fragments, ast.Key{Name: name, Doc: standard.Doc(name)})
		for _, fragment := range standard.Fragments(name) {
			fragments = append(fragments, ast.Key{Name: fragment.Name, Doc: fragment.Doc})
		}
	}
	return append(tables,
		languageTable{"std", "fragments that need no file", fragments, "fragment that needs no file", ""},
		languageTable{"matcher", "comparison in expect", compile.Matchers(), "comparison in expect", ""},
		languageTable{
			"data", "form in which bytes are written", compile.DataForms(), "form in which bytes are written", "",
		},
		languageTable{"integer", "integer of fields", compile.FieldForms(), "integer of fields", ""},
		languageTable{"metric", "what a threshold limits", compile.Metrics(), "what a threshold limits", ""},
		languageTable{
			"requirement", "name in requires, xfail and the if of a threshold", compile.Requirements(),
			"name in requires and xfail", "requirements",
		},
		languageTable{
			"name", "name in an expression of a step", compile.NamesInSteps(), "name in an expression", "names",
		},
		languageTable{"operator", "operator of expressions", operators, "operator of expressions", ""},
		languageTable{"function", "function of expressions", functions, "function of expressions", ""},
		languageTable{"unit", "unit of sizes and times", units, "unit of sizes and times", ""})
}

func languageSubjects() []subject {
	var all []subject
	for _, table := range languageTables() {
		rows := make([][2]string, len(table.words))
		for i, word := range table.words {
			rows[i] = [2]string{word.Name, word.Doc}
		}
		all = append(all, subject{name: table.name, title: table.title, rows: func() [][2]string { return rows },
			show: func(w io.Writer, word string) bool {
				return showWord(w, table, word)
			}})
	}
	return all
}

func showWord(w io.Writer, table languageTable, word string) bool {
	for _, each := range table.words {
		if each.Name == word {
			fmt.Fprintf(w, "%s: %s\n  %s\n", word, table.kind, each.Doc)
			showFragment(w, word)
			return true
		}
	}
	return false
}

// showFragment shows standard fragments as their file has them: all of a library, or one.
func showFragment(w io.Writer, word string) {
	for _, name := range standard.Names() {
		if text, _ := standard.Text(name); name == word {
			fmt.Fprintf(
				w, "\nimports: {%s: %s} finds this file, which is in the program:\n\n%s", path.Base(name), name,
				indented(string(text)),
			)
		}
		for _, fragment := range standard.Fragments(name) {
			if fragment.Name == word {
				fmt.Fprintf(w, "\n%s", indented(fragment.Text))
			}
		}
	}
}

// exampleOf is the example of a word.
func exampleOf(word string) *example.Example {
	if found := example.Find(word); found != nil {
		return found
	}
	if found := example.Find(strings.ToUpper(word)); found != nil {
		return found
	}
	if shown := shortestWith(word); shown != nil {
		return shown
	}
	for _, table := range languageTables() {
		if table.example != "" && slices.ContainsFunc(table.words, func(key ast.Key) bool { return key.Name == word }) {
			return example.Find(table.example)
		}
	}
	return nil
}

// betweenItems is where an item of a list begins, and so a step.
var betweenItems = regexp.MustCompile(`\n *- `)

// shortestWith is the shortest example with a step that gives an argument or expects a result. Without one, it is an
// example of the verb that has it; nil for any other word.
func shortestWith(word string) *example.Example {
	var verbs []string
	for _, each := range append(argumentProperties(), resultProperties()...) {
		if each.name == word {
			verbs = append(verbs, each.verbs...)
		}
	}
	if verbs == nil {
		return nil
	}
	ofVerb := regexp.MustCompile(`(?m)(role: \w+, |^ *\{?)(` + strings.Join(verbs, "|") + `):`)
	written := regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `:`)
	var shortest *example.Example
	for _, each := range example.All() {
		writes := slices.ContainsFunc(betweenItems.Split(each.Text, -1), func(step string) bool {
			return ofVerb.MatchString(step) && written.MatchString(step)
		})
		if writes && (shortest == nil || len(each.Text) < len(shortest.Text)) {
			shortest = &each
		}
	}
	if shortest == nil {
		return example.Find(verbs[0])
	}
	return shortest
}

// exampleWords are the words that have an example.
func exampleWords() []string {
	var words []string
	for _, v := range verb.NewTable().Verbs() {
		words = append(words, v.Name)
	}
	for _, each := range append(argumentProperties(), resultProperties()...) {
		words = append(words, each.name)
	}
	for _, table := range languageTables() {
		for _, key := range table.words {
			words = append(words, key.Name)
		}
	}
	return words
}

// showExample writes an example as it can be run; alone it is the file and nothing else.
func showExample(w io.Writer, word string, alone bool) error {
	found := exampleOf(word)
	switch {
	case found == nil && alone:
		return withHint(
			usageError("there is no example of %q", word),
			cmp.Or(
				diag.DidYouMean(word, exampleWords()), "\"rdmarun explain verb\" lists the verbs, which all have one",
			),
		)
	case found == nil:
		return nil
	case alone:
		_, err := io.WriteString(w, found.Text)
		return err
	}
	if _, err := fmt.Fprintf(
		w, "\nexample, a whole file (rdmarun explain --example %s >FILE.yaml):\n\n%s", word, indented(found.Text),
	); err != nil {
		return err
	}
	for _, name := range shownFiles(found.Files) {
		if _, err := fmt.Fprintf(
			w, "\nfile %s:\n\n%s", fileName(name), indented(found.Files[name]),
		); err != nil {
			return err
		}
	}
	return nil
}

// shownFiles are the readable files of an example: a guest's source in place of its module.
func shownFiles(texts map[string]string) []string {
	return slices.DeleteFunc(sortedNames(texts), func(name string) bool { return path.Ext(name) == ".wasm" })
}

// fileName is the name of a file in the folder of a scenario; the source of a guest has to be assembled.
func fileName(name string) string {
	if base, isSource := strings.CutSuffix(name, ".wat"); isSource {
		return fmt.Sprintf("%s.wasm, assembled (wat2wasm) from %s", base, name)
	}
	return name
}

func indented(text string) string {
	lines := strings.SplitAfter(text, "\n")
	for i, line := range lines {
		if strings.TrimSpace(line) != "" {
			lines[i] = "  " + line
		}
	}
	return strings.Join(lines, "")
}

// property is an argument or a result of one verb or of several that take or give it alike.
type property struct {
	name  string
	verbs []string
	// inside is the argument that it is a key of, "" for an argument of the verb itself.
	inside     string
	notes, doc string
	// also are the mappings of other verbs that have the arguments of the verb.
	also []string
	// words are the values that it can have, where those have names; keys are what it has as a mapping.
	words, keys []string
}

// owner is what has the property.
func (p property) owner() string {
	verbs := strings.Join(append(slices.Clone(p.verbs), p.also...), ", ")
	if p.inside == "" {
		return verbs
	}
	return p.inside + " in " + verbs
}

// gather joins properties that differ only in their verbs.  A mapping with the name of a verb has that verb's
// arguments.
func gather(list []property, next property) []property {
	for i, known := range list {
		if known.name == next.name && known.inside == "" && known.doc == next.doc &&
			slices.Contains(known.verbs, next.inside) {
			list[i].also = append(known.also, next.owner())
			return list
		}
		if known.name == next.name && known.inside == next.inside && known.notes == next.notes &&
			known.doc == next.doc {
			list[i].verbs = append(known.verbs, next.verbs...)
			return list
		}
	}
	return append(list, next)
}

// argumentProperties are the arguments of all verbs, and the keys of those that are mappings.
func argumentProperties() []property {
	var list []property
	for _, v := range verb.NewTable().Verbs() {
		for _, argument := range v.Arguments {
			if argument.Inline {
				continue // its keys are a topic of their own
			}
			list = gather(list, property{
				name: argument.Name, verbs: []string{v.Name}, notes: argumentNotes(argument), doc: argument.Doc,
				words: argument.Words, keys: keysOf(argument),
			})
			for _, field := range fieldsOf(argument) {
				if v.Name == "mesh" && field.Name == "stages" {
					continue // mesh refuses it
				}
				list = gather(list, property{
					name: field.Name, verbs: []string{v.Name}, inside: argument.Name, notes: argumentNotes(field),
					doc: field.Doc, words: field.Words,
				})
			}
		}
	}
	for i, each := range list {
		if each.inside == "qp" {
			list[i].verbs = append(each.verbs, "defaults")
		}
	}
	return list
}

// resultProperties are the results of all verbs.
func resultProperties() []property {
	var list []property
	for _, v := range verb.NewTable().Verbs() {
		for _, result := range v.Results {
			list = gather(list, property{
				name: result.Name, verbs: []string{v.Name}, notes: resultNotes(result), doc: result.Doc,
			})
		}
	}
	return list
}

// fieldsOf are the keys of an argument that is a mapping of its own.
func fieldsOf(argument verb.Argument) []verb.Argument {
	if argument.Type == verb.QueuePair {
		return verb.QueuePairArguments()
	}
	return argument.Fields
}

// keysOf are their names.
func keysOf(argument verb.Argument) []string {
	var names []string
	for _, field := range fieldsOf(argument) {
		names = append(names, field.Name)
	}
	return names
}

// propertySubject is a topic of what verbs take or give.
func propertySubject(name, title string, properties func() []property) subject {
	return subject{name: name, title: title, rows: func() [][2]string { return propertyRows(properties()) },
		show: func(w io.Writer, word string) bool {
			return showProperties(w, name, properties(), word)
		}}
}

// propertyRows names each property once, if verbs differ in it as the first verb has it.
func propertyRows(list []property) [][2]string {
	var rows [][2]string
	seen := make(map[string]bool)
	for _, each := range list {
		if !seen[each.name] {
			seen[each.name] = true
			rows = append(rows, [2]string{each.name, each.doc})
		}
	}
	slices.SortFunc(rows, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return rows
}

func showProperties(w io.Writer, kind string, list []property, word string) bool {
	found := false
	for _, each := range list {
		if each.name == word {
			found = true
			fmt.Fprintf(w, "%s: %s of %s\n  %s\n  %s\n", word, kind, each.owner(), each.doc, each.notes)
			if each.keys != nil {
				fmt.Fprintf(w, "  its keys: %s\n", strings.Join(each.keys, ", "))
			}
		}
	}
	return found
}

// showValue explains a word that nothing but an argument has as its value.
func showValue(w io.Writer, word string) bool {
	found := false
	for _, each := range argumentProperties() {
		if slices.Contains(each.words, word) {
			found = true
			fmt.Fprintf(w, "%s: value of %s, argument of %s\n  %s\n", word, each.name, each.owner(), each.doc)
		}
	}
	return found
}

// valueWords are the words that showValue accepts.
func valueWords() []string {
	var words []string
	for _, each := range argumentProperties() {
		words = append(words, each.words...)
	}
	return words
}
