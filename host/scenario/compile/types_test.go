package compile

import (
	"strings"
	"testing"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// TestTypesAreWhole: each type has a name, and all that reading a value of it takes.
func TestTypesAreWhole(t *testing.T) {
	names := make(map[string]verb.Type)
	for of, row := range newTypeTable() {
		kind := verb.Type(of)
		name := kind.String()
		if name == "" {
			t.Errorf("type %d has no name", of)
			continue
		}
		if other, taken := names[name]; taken {
			t.Errorf("types %d and %d are both %q", other, of, name)
		}
		names[name] = kind
		if row.parse == nil || row.convert == nil || row.result == nil {
			t.Errorf("the row of %q is not whole", name)
		}
		if row.kinds == nil && kind != verb.Text && kind != verb.Any {
			t.Errorf("%q takes expressions of all kinds", name)
		}
	}
}

// TestNumbersAreNoText: expressions may be in the middle of text only, never of a number.
func TestNumbersAreNoText(t *testing.T) {
	for _, kind := range []verb.Type{
		verb.Integer, verb.Unsigned, verb.Size, verb.Duration, verb.Boolean, verb.Status, verb.Fraction, verb.Rate,
		verb.Sizes,
	} {
		var errors diag.List
		d := newDecoder(nil, Options{}, &errors)
		node := syntax.Parse(diag.NewSource("t.yaml", []byte("x: 1$(2)\n")), &errors).Get("x")
		if value := d.scalar(&verb.Argument{Name: "x", Type: kind}, node, place{scope: d.global}); value != nil {
			t.Errorf("%s: there is a value %v", kind, value)
		}
		found := errors.Sorted()
		if len(found) != 1 || found[0].Code != diag.WrongType || !strings.Contains(found[0].Message, kind.String()) {
			t.Errorf("%s: reported are %v", kind, found)
		}
	}
}
