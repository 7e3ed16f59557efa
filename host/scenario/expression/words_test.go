package expression

import (
	"slices"
	"testing"

	"github.com/expr-lang/expr/parser/operator"
)

// TestWordsAreThoseOfTheLibrary holds the documented functions and operators against those that expressions have.
func TestWordsAreThoseOfTheLibrary(t *testing.T) {
	documented := func(words []Documented) []string {
		var names []string
		for _, word := range words {
			if word.Doc == "" || slices.Contains(names, word.Name) {
				t.Errorf("%q has no text, or is there twice", word.Name)
			}
			names = append(names, word.Name)
		}
		return names
	}
	functions := documented(Functions())
	for name := range builtins() {
		if !slices.Contains(functions, name) {
			t.Errorf("the function %s is not documented", name)
		}
	}
	for _, name := range functions {
		if builtins()[name] == nil {
			t.Errorf("there is no function %s", name)
		}
	}
	operators := documented(Operators())
	for _, table := range []map[string]operator.Operator{operator.Binary, operator.Unary} {
		for name := range table {
			if name != "^" && !slices.Contains(operators, name) { // which Compile refuses
				t.Errorf("the operator %s is not documented", name)
			}
		}
	}
}
