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
	"rdmarun/host/scenario/verb"
)

// withoutExample are the words that no example can show, each with its reason.
var withoutExample = map[string]string{
	"place":  "it wants several hosts",
	"spread": "it wants several hosts",
}

// TestEachWordHasAnExample wants, of each word of each table, a scenario that uses it in that sense, and that the one
// which `explain` shows uses it in one of its senses.
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
	for _, table := range append(tables, verbs) {
		for _, word := range table.words {
			if !shown[word.Name] && withoutExample[word.Name] == "" {
				t.Errorf("what explain shows of %s (%s) does not have it", word.Name, table.name)
			}
		}
	}
}

var withoutTags = regexp.MustCompile(`(?m)^ *tags: \[[^]]*\]$`)

// TestEachTagIsAsked: a tag is a word that is explained, or one that stands in its example; else nobody asks for it.
func TestEachTagIsAsked(t *testing.T) {
	known := map[string]bool{"scenario": true} // the first example of all
	for _, word := range explainable() {
		known[word] = true
	}
	for _, each := range example.All() {
		for _, word := range each.Words {
			text := withoutTags.ReplaceAllString(each.Text, "")
			if word != each.Title && !known[word] && !regexp.MustCompile(`\b`+regexp.QuoteMeta(word)+`\b`).MatchString(text) {
				t.Errorf("%s, %s: nobody asks for %q", each.File, each.Title, word)
			}
		}
	}
}

// TestUsage holds the reader of examples against what it must tell apart.
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
		{"buffers", "size", true}, {"roles", "size", false}, {"data", "text", true}, {"data", "hex", false}, {"roles", "count", false},
		{"verb", "fill", true}, {"buffers", "fill", true}, {"matcher", "le", true}, {"matcher", "byte_len", false}, {"step", "if", true},
		{"thresholds", "if", false}, {"operator", ">=", true}, {"operator", "<", false}, {"operator", ">", false}, {"function", "len", true},
		{"requirement", "device.atomic", true}, {"requirement", "device.max_sge", false}, {"name", "ROLE.device.max_sge", true},
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

// TestEachPropertyIsExplained wants of each argument, result and attribute of a queue pair an explanation that says what
// it is of and what it is for.
func TestEachPropertyIsExplained(t *testing.T) {
	for kind, list := range map[string][]property{"argument": argumentProperties(), "result": resultProperties()} {
		for _, each := range list {
			var out strings.Builder
			if !showProperties(&out, kind, list, each.name) {
				t.Errorf("%s is not explained", each.name)
			}
			if !strings.Contains(out.String(), each.owner()) || !strings.Contains(out.String(), each.doc) || each.doc == "" {
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

// TestTimesConcernWords: each time is shown by explain, where somebody asks for a word that is known.
func TestTimesConcernWords(t *testing.T) {
	known := explainable()
	for _, each := range explain.Times() {
		if len(each.Of) == 0 {
			t.Errorf("nobody is told of %s", each.What)
		}
		for _, word := range each.Of {
			if !slices.Contains(known, word) {
				t.Errorf("%s: nobody asks for %q", each.What, word)
			}
		}
	}
}

// TestSuggestions: the word that was meant is among those that suggestions know, which look at so many only.
func TestSuggestions(t *testing.T) {
	if words := explainable(); len(words) > 1000 {
		t.Errorf("%d words, of which a suggestion sees 1000 (diag.Suggest)", len(words))
	}
	for wrong, right := range map[string]string{"retry_cout": "retry_count", "privat_data": "private_data", "max_sendwr": "max_send_wr", "bad_wrr": "bad_wr", "DREQQ": "DREQ"} {
		if hint := diag.DidYouMean(wrong, explainable()); !strings.Contains(hint, `"`+right+`"`) {
			t.Errorf("%s: %s", wrong, hint)
		}
	}
}
