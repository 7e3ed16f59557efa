package ast

import (
	"strings"
	"testing"
)

// TestKeysAreDocumented: each key of each mapping has a name of its own, and says what it is for.
func TestKeysAreDocumented(t *testing.T) {
	for _, mapping := range Mappings() {
		seen := make(map[string]bool)
		for _, key := range mapping.Keys {
			if key.Name == "" || key.Doc == "" || seen[key.Name] {
				t.Errorf("key %q of %s: doc %q, there already: %v", key.Name, mapping.Of, key.Doc, seen[key.Name])
			}
			seen[key.Name] = true
		}
		if len(seen) == 0 {
			t.Errorf("%s has no keys", mapping.Of)
		}
	}
}

// TestTypesOfParametersAreNamed: the documentation of the key lists all types that there are.
func TestTypesOfParametersAreNamed(t *testing.T) {
	want := strings.Join(fileParamTypes, ", ") + "; in fragments also map"
	if doc := paramSection.keys[0].Doc; doc != want {
		t.Errorf("type is documented as %q, want %q", doc, want)
	}
}
