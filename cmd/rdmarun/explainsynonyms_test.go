package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSynonymsLead: what a synonym leads to is there.
func TestSynonymsLead(t *testing.T) {
	seen := make(map[string]bool)
	for _, each := range synonyms() {
		for _, word := range each.see {
			if found, err := explainWord(&bytes.Buffer{}, word); err != nil || !found {
				t.Errorf("%s: nothing is known of %q: %v", each.words, word, err)
			}
		}
		if _, err := os.Stat(filepath.Join("..", "..", each.read)); err != nil {
			t.Error(err)
		}
		for word := range strings.FieldsSeq(each.words) {
			if seen[word] {
				t.Errorf("%q is there twice", word)
			}
			seen[word] = true
			var shown bytes.Buffer
			if !showSynonym(&shown, word) || !strings.Contains(shown.String(), each.meaning) {
				t.Errorf("%q shows %q", word, &shown)
			}
		}
	}
}
