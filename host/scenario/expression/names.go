package expression

import (
	"maps"
	"reflect"
	"regexp"
	"slices"

	"github.com/expr-lang/expr/types"
)

// Type is the type of a name in an expression.
type Type = types.Type

// The types that scenarios use.
var (
	Integer = types.Int
	String  = types.String
	Boolean = types.Bool
	Any     = types.Any
)

// Object is a type with named members.
type Object = types.Map

// List is the type of a list whose items have one type.
func List(of Type) Type { return types.Array(of) }

// TypeOf is the type of a Go value; struct fields carry their names in an `expr` tag.
func TypeOf(value any) Type { return types.TypeOf(value) }

// Names is what an expression may mention, each with its type.
type Names map[string]Type

var word = regexp.MustCompile(`[\pL_][\pL\pN_]*`)

// Words lists the words in an expression; what it mentions is among them.
func Words(source string) map[string]bool {
	words := make(map[string]bool)
	for _, w := range word.FindAllString(source, -1) {
		words[w] = true
	}
	return words
}

// Sorted lists the names.
func (n Names) Sorted() []string { return slices.Sorted(maps.Keys(n)) }

// members lists what can stand after a dot behind a value of that type; nil when that is not known.
func members(t Type) []string {
	if object, ok := t.(Object); ok {
		names := slices.Sorted(maps.Keys(object))
		return slices.DeleteFunc(names, func(name string) bool { return name == types.Extra })
	}
	nature := t.Nature()
	if nature.Type == nil || nature.Type.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range nature.Type.NumField() {
		if tag := nature.Type.Field(i).Tag.Get("expr"); tag != "" {
			names = append(names, tag)
		}
	}
	return names
}
