package main

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/example"
	"rdmarun/host/scenario/explain"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// withoutExample are the words that no example can show, each with its reason.
var withoutExample = map[string]string{
	"place":  "it wants several hosts",
	"spread": "it wants several hosts",
	"user":   "it wants root",
}

// TestEachWordHasAnExample wants a scenario for each word of each table that uses it in that sense. The one which
// `explain` shows must use it in one of its senses.
func TestEachWordHasAnExample(t *testing.T) {
	var used []*usage
	for _, each := range example.All() {
		used = append(used, usageOf(each.Text))
	}
	tables := languageTables()
	verbs := languageTable{name: "verb"}
	for _, name := range verb.NewTable().Names() {
		verbs.words = append(verbs.words, ast.Key{Name: name})
	}
	shown := make(map[string]bool) // by explain, in one sense at least
	for _, table := range append(tables, verbs) {
		for _, word := range table.words {
			if found := exampleOf(word.Name); found != nil && usageOf(found.Text).has(table.name, word.Name) {
				shown[word.Name] = true
			}
			uses := slices.ContainsFunc(used, func(u *usage) bool { return u.has(table.name, word.Name) })
			if excused := withoutExample[word.Name] != ""; uses == excused {
				t.Errorf("%s of %s: used by an example %v, excused %v", word.Name, table.name, uses, excused)
			}
		}
	}
	for _, table := range tables {
		shown[table.name] = true // by the example of the whole table
	}
	for _, table := range append(tables, verbs) {
		for _, word := range table.words {
			if !shown[word.Name] && withoutExample[word.Name] == "" {
				t.Errorf("what explain shows of %s (%s) does not have it", word.Name, table.name)
			}
		}
	}
}

var withoutTags = regexp.MustCompile(`(?m)^ *tags: \[[^]]*\]$`)

// TestEachTagIsAsked: a tag is a word that is explained, or one in its example; other tags have no use.
func TestEachTagIsAsked(t *testing.T) {
	known := map[string]bool{"scenario": true} // the first example of all
	for _, word := range explainable() {
		known[word] = true
	}
	for _, each := range example.All() {
		for _, word := range each.Words {
			text := withoutTags.ReplaceAllString(each.Text, "")
			if word != each.Title && !known[word] &&
				!regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`).MatchString(text) {
				t.Errorf("%s, %s: explain does not know %q", each.File, each.Title, word)
			}
		}
	}
}

// TestUsage checks what the reader of examples must distinguish.
func TestUsage(t *testing.T) {
	u := usageOf(`rdmarun: v1
tags: [count]
roles: {server: {buffers: {rx: {size: 64, fill: {text: a}}}}}
cases:
  - name: text
    requires: [device.atomic]
    steps:
      - {role: server, fill: {buffer: rx, byte: 1}, if: "server.device.max_sge >= 2"}
      - {role: server, poll: {cq: recv}, expect: {byte_len: {le: 4}}}
      - {log: "$(len('a < b'))"}
`)
	for _, each := range []struct {
		table, word string
		want        bool
	}{
		{"buffers", "size", true}, {"roles", "size", false}, {"data", "text", true}, {"data", "hex", false},
		{"roles", "count", false},
		{"verb", "fill", true}, {"buffers", "fill", true}, {"matcher", "le", true}, {"matcher", "byte_len", false},
		{"step", "if", true},
		{"thresholds", "if", false}, {"operator", ">=", true}, {"operator", "<", false}, {"operator", ">", false},
		{"function", "len", true},
		{"requirement", "device.atomic", true}, {"requirement", "device.max_sge", false},
		{"name", "ROLE.device.max_sge", true},
		{"name", "ROLE.device.max_qp", false},
	} {
		if got := u.has(each.table, each.word); got != each.want {
			t.Errorf("%s of %s: %v", each.word, each.table, got)
		}
	}
}

// TestLanguageReferenceIsComplete looks for every word of the tables in the page.
func TestLanguageReferenceIsComplete(t *testing.T) {
	text := languageReference()
	for _, table := range languageTables() {
		for _, word := range table.words {
			if !bytes.Contains(text, []byte("| `"+cell(word.Name)+"` |")) {
				t.Errorf("the reference lacks %s of %s", word.Name, table.name)
			}
		}
	}
}

// TestEachPropertyIsExplained wants of each argument, result and attribute of a queue pair an explanation that says
// what it is of and what it is for.
func TestEachPropertyIsExplained(t *testing.T) {
	for kind, list := range map[string][]property{"argument": argumentProperties(), "result": resultProperties()} {
		for _, each := range list {
			var out strings.Builder
			if !showProperties(&out, kind, list, each.name) {
				t.Errorf("%s is not explained", each.name)
			}
			if !strings.Contains(out.String(), each.owner()) || !strings.Contains(out.String(), each.doc) ||
				each.doc == "" {
				t.Errorf("%s: neither what it is of nor what it is for:\n%s", each.name, out.String())
			}
		}
	}
	for _, word := range valueWords() {
		if !showValue(io.Discard, word) {
			t.Errorf("%s is not explained", word)
		}
	}
}

// TestEachDropIsDefined: what a fault can concern, and what it does, is defined and not only a value of an argument.
func TestEachDropIsDefined(t *testing.T) {
	defined := make(map[string]bool)
	for _, topic := range explain.Topics() {
		for _, entry := range topic.Entries {
			defined[entry.Name] = true
		}
	}
	words := 0
	for _, name := range []string{"drop", "action"} {
		fault := verb.NewTable().Lookup("fault")
		for _, word := range fault.Arguments[fault.Argument(name)].Words {
			words++
			if !defined[word] {
				t.Errorf("%s of %s has no definition", word, name)
			}
		}
	}
	if words < 18 {
		t.Errorf("%d words", words)
	}
}

// TestTimesConcernWords: explain shows each time, under a word that it knows.
func TestTimesConcernWords(t *testing.T) {
	known := explainable()
	for _, each := range explain.Times() {
		if len(each.Of) == 0 {
			t.Errorf("no text mentions %s", each.What)
		}
		for _, word := range each.Of {
			if !slices.Contains(known, word) {
				t.Errorf("%s: explain does not know %q", each.What, word)
			}
		}
	}
}

// TestSuggestions: the word that was meant is among those that suggestions know, which look at so many only.
func TestSuggestions(t *testing.T) {
	if words := explainable(); len(words) > 2000 {
		t.Errorf("%d words, of which a suggestion sees 2000 (diag.Suggest)", len(words))
	}
	for wrong, right := range map[string]string{
		"retry_cout": "retry_count", "privat_data": "private_data", "max_sendwr": "max_send_wr", "bad_wrr": "bad_wr",
		"DREQQ": "DREQ",
	} {
		if hint := diag.DidYouMean(wrong, explainable()); !strings.Contains(hint, `"`+right+`"`) {
			t.Errorf("%s: %s", wrong, hint)
		}
	}
}

// usage is what an example uses: which words of which table, by their places.
type usage struct {
	words map[[2]string]bool // table and word
	// The texts of expressions: those of steps, and the conditions of requires, when and thresholds.
	steps, conditions strings.Builder
	verbs             *verb.Table
}

// usageOf reads a scenario as the checker does, by the place of each word.
func usageOf(text string) *usage {
	u := &usage{words: make(map[[2]string]bool), verbs: verb.NewTable()}
	root := syntax.Parse(diag.NewSource("example.yaml", []byte(text)), &diag.List{})
	u.mapping(root, "file")
	return u
}

func (u *usage) add(table, word string) { u.words[[2]string{table, word}] = true }

// mapping notes the keys of a mapping that is described by a table, and goes on to their values.
func (u *usage) mapping(node *syntax.Node, table string) {
	if node == nil || node.Kind != syntax.Mapping {
		return
	}
	for _, pair := range node.Pairs {
		u.add(table, pair.Key.Value)
		u.value(table, pair.Key.Value, pair.Value)
	}
}

// value reads the value of a key.
func (u *usage) value(table, key string, value *syntax.Node) {
	switch key {
	case "params", "roles", "buffers", "fragments", "fixtures":
		for _, pair := range value.Pairs {
			u.mapping(pair.Value, key)
		}
	case "cases", "thresholds", "stages":
		for _, item := range value.Items {
			u.mapping(item, key)
		}
	case "matrix", "provider", "soft", "verbs", "defaults", "path", "place", "limits", "xfail", "raises",
		"abort_on_fail", "took", "repeat", "allow":
		u.mapping(value, key)
	case "stdin":
		u.mapping(value, "input")
	case "files":
		for _, pair := range value.Pairs {
			u.mapping(pair.Value, "input")
		}
	case "guest", "program":
		u.mapping(value, key) // of a role; that of a step is a word
	case "setup", "teardown", "steps", "finally", "do", "parallel":
		for _, item := range value.Items {
			u.step(item)
		}
	case "requires", "pass":
		for _, item := range value.Items {
			u.conditions.WriteString(item.Value + "\n")
		}
	case "when", "if":
		if table != "step" {
			u.conditions.WriteString(value.Value + "\n")
		}
	case "imports":
		for _, pair := range value.Pairs {
			u.add("std", pair.Value.Value)
		}
	case "use":
		u.add("std", value.Value)
	case "metric":
		metric, _, _ := strings.Cut(value.Value, "{")
		u.add("metric", metric)
	case "type":
		if table == "params" {
			u.add("type", value.Value)
		}
	}
	u.expressions(key, value)
	u.data(value)
}

// step notes the keys of a step by what they are.
func (u *usage) step(node *syntax.Node) {
	for _, pair := range node.Pairs {
		key := pair.Key.Value
		if u.verbs.Lookup(key) != nil {
			u.add("verb", key)
			u.data(pair.Value)
			u.expressions(key, pair.Value)
			continue
		}
		u.add("step", key) // or an action: no word is both
		u.add("action", key)
		u.value("step", key, pair.Value)
		if key != "expect" {
			continue
		}
		for _, field := range pair.Value.Pairs {
			for _, matcher := range field.Value.Pairs {
				u.add("matcher", matcher.Key.Value)
			}
		}
	}
}

// data notes the forms of data and their integers, which may be anywhere among arguments.
func (u *usage) data(node *syntax.Node) {
	for _, pair := range node.Pairs {
		u.add("data", pair.Key.Value)
		if pair.Key.Value == "fields" {
			for _, item := range pair.Value.Items {
				for _, field := range item.Pairs {
					u.add("integer", field.Key.Value)
				}
			}
		}
		u.data(pair.Value)
	}
	for _, item := range node.Items {
		u.data(item)
	}
}

// expressions gathers those of a value, and of what is in it.
func (u *usage) expressions(key string, node *syntax.Node) {
	if key == "assert" || key == "if" {
		u.steps.WriteString(node.Value + "\n")
	}
	pieces, _ := expression.Scan(node.Value)
	for _, piece := range pieces {
		if piece.Expression {
			u.steps.WriteString(piece.Text + "\n")
		}
	}
	for _, pair := range node.Pairs {
		u.expressions("", pair.Value)
	}
	for _, item := range node.Items {
		u.expressions("", item)
	}
}

// has reports whether a word of a table is used.
func (u *usage) has(table, word string) bool {
	switch table {
	case "operator":
		return usesOperator(u.steps.String(), word)
	case "function":
		return regexp.MustCompile(`\b` + regexp.QuoteMeta(word) + `\(`).MatchString(u.steps.String())
	case "unit":
		return regexp.MustCompile(`\d` + word + `\b`).MatchString(quotedText.ReplaceAllString(u.steps.String(), "x"))
	case "requirement":
		return named(word).MatchString(u.conditions.String())
	case "name":
		return named(word).MatchString(u.steps.String() + u.conditions.String())
	}
	return u.words[[2]string{table, word}]
}

// named finds a name in which words of capitals stand for any name.
func named(word string) *regexp.Regexp {
	form := regexp.MustCompile(
		`\\\[0\\\]|\b[A-Z]+\b`,
	).ReplaceAllStringFunc(regexp.QuoteMeta(word), func(part string) string {
		switch part {
		case "ROLE":
			return `[a-z]+(\[\d+\])?`
		case `\[0\]`:
			return `\[\d+\]`
		}
		return `"?\w+"?`
	})
	return regexp.MustCompile(`(^|[^\w.])` + form + `($|[^\w])`)
}

// symbols are the operators in a text, each whole: no < is in a <=.
var symbols = regexp.MustCompile(`\*\*|\.\.|\?\.|\?\?|&&|\|\||[=!<>]=|[-+*/%<>!|.?:]|\[`)

var quotedText = regexp.MustCompile(`'[^']*'|"[^"]*"`)

func usesOperator(text, operator string) bool {
	text = quotedText.ReplaceAllString(text, "x")
	if regexp.MustCompile(`^\w+$`).MatchString(operator) {
		return regexp.MustCompile(`\b` + operator + `\b`).MatchString(text)
	}
	found := make(map[string]bool)
	for _, symbol := range symbols.FindAllString(text, -1) {
		found[symbol] = true
	}
	switch operator {
	case "?:":
		return found["?"] && found[":"]
	case "[ ]":
		return found["["]
	}
	return found[operator]
}
