package compile

import (
	"strings"

	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
)

// setting is one name of a matrix or a for_each with one of its values.
type setting struct {
	name  string
	text  string // as the file has it, for ids
	value any
	node  *syntax.Node
	axis  *syntax.Node // the name, where something should mention it
}

// combination is one value for each name.
type combination []setting

// id is the combination as part of a case's id.
func (combo combination) id() string {
	words := make([]string, len(combo))
	for i, each := range combo {
		words[i] = each.name + "=" + each.text
	}
	return strings.Join(words, ",")
}

// addTo declares the names in a scope.
func (combo combination) addTo(s *scope) {
	for _, each := range combo {
		s.add(each.name, typeOfValue(each.value), each.value)
		if each.axis != nil {
			s.declaredAt(each.name, each.axis)
		}
		if hexWritten(each.text) {
			s.writtenInHex(each.name)
		}
	}
}

func (combo combination) constants() []Constant {
	list := make([]Constant, len(combo))
	for i, each := range combo {
		list[i] = Constant{each.name, each.value}
	}
	return list
}

func typeOfValue(value any) expression.Type {
	switch value.(type) {
	case int:
		return expression.Integer
	case bool:
		return expression.Boolean
	case string:
		return expression.String
	}
	return expression.TypeOf(value)
}

func (combo combination) matches(values map[string]any) bool {
	for _, each := range combo {
		if want, named := values[each.name]; named && want != each.value {
			return false
		}
	}
	return true
}
