package main

import (
	"bytes"
	"strings"
	"testing"

	"rdmarun/host/scenario/verb"
)

// withoutExample are the words that no example can show, each with its reason.
var withoutExample = map[string]string{
	"place":  "it wants several hosts",
	"spread": "it wants several hosts",
}

// namesOnly are tables of names, which the examples of other words mention.
var namesOnly = map[string]bool{"requirement": true, "name": true}

// TestEachWordHasAnExample wants a scenario with the word for each verb, key, operator and function.
func TestEachWordHasAnExample(t *testing.T) {
	words := verb.NewTable().Names()
	for _, table := range languageTables() {
		if namesOnly[table.name] {
			continue
		}
		for _, word := range table.words {
			words = append(words, word.Name)
		}
	}
	for _, word := range words {
		found := exampleOf(word)
		switch {
		case found == nil && withoutExample[word] == "":
			t.Errorf("there is no example of %s", word)
		case found == nil:
		case withoutExample[word] != "":
			t.Errorf("there is an example of %s, and it is said that there is none", word)
		case !shows(found.Text, word):
			t.Errorf("the example of %s does not have it: %s, %s", word, found.File, found.Title)
		}
	}
}

// shows tells whether a scenario has a word elsewhere than among the tags that find it.
func shows(text, word string) bool {
	begin := strings.LastIndex(text, "tags: [")
	if begin >= 0 {
		length := strings.Index(text[begin:], "]")
		if rest := strings.Index(text[begin:], "]\n    steps"); rest > length {
			length = rest
		}
		text = text[:begin] + text[begin+length:]
	}
	for _, part := range strings.Fields(strings.NewReplacer("?:", "? :", "[ ]", "[").Replace(word)) {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
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
