// Package jsonschema has the pieces of the JSON Schema of scenarios. Package compile describes the values of each
// type, and host/schema the rest of a file.
package jsonschema

import "maps"

// Object is a JSON object; encoding/json writes its keys in order, so the same language is the same text.
type Object = map[string]any

// The forms of scalars that a schema can distinguish.  The results of expressions are known only in the run; the
// checker checks units, and bounds with units.
const (
	expressionForm = `\$\(`
	IntegerForm    = `^[+-]?[0-9][0-9A-Fa-fxXoOB_]*$|` + expressionForm
	SizeForm       = `^[+-]?[0-9][0-9A-Fa-fxXoOB_]*$|^-?[0-9]+(\.[0-9]+)?\s*[A-Za-z]+$|` + expressionForm
	DurationForm   = `^[+-]?0$|^[+-]?[0-9.]+[a-zµμ]+[0-9.a-zµμ]*$|` + expressionForm
	FractionForm   = `^[-+0-9.eE]+%?$|` + expressionForm
	RateForm       = `/s$|` + expressionForm
)

// Ref is a reference to a definition.
func Ref(name string) Object { return Object{"$ref": "#/$defs/" + name} }

// Scalar is anything that YAML can make of a plain word.
func Scalar() Object { return Object{"type": []string{"string", "number", "boolean", "null"}} }

// Expression is a string with $(...) in it.
func Expression() Object { return Object{"type": "string", "pattern": expressionForm} }

// ListOf is a list that has something.
func ListOf(item Object) Object { return Object{"type": "array", "minItems": 1, "items": item} }

// Pair is a list of two.
func Pair(item Object) Object {
	return Object{"type": "array", "minItems": 2, "maxItems": 2, "items": item}
}

// Word is one of some words, or an expression.
func Word(known []string) Object {
	if len(known) == 0 {
		return Object{}
	}
	return Object{"anyOf": []any{Object{"enum": known}, Expression()}}
}

// Words is a list of some words.
func Words(known []string) Object { return Object{"type": "array", "items": Word(known)} }

// Require is a schema of nothing but keys that must be there.
func Require(keys ...string) Object { return Object{"required": keys} }

// Documented is a copy of a schema with a description; of anything else, one with nothing but that.
func Documented(schema any, doc string) Object {
	described := Object{"description": doc}
	if known, ok := schema.(Object); ok {
		maps.Copy(described, known)
	}
	return described
}
