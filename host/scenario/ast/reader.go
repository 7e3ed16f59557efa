package ast

import (
	"regexp"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// reader walks nodes and collects what is wrong with them.  Its methods return nil, or leave out, what
// they have reported.
type reader struct {
	table  *verb.Table
	errors *diag.List
}

func (r *reader) mapping(node *syntax.Node, what string) bool {
	return r.kind(node, syntax.Mapping, what)
}

func (r *reader) kind(node *syntax.Node, kind syntax.Kind, what string) bool {
	if node.Kind == kind {
		return true
	}
	got := "a " + node.Kind.String()
	if node.IsNull() {
		got = "nothing"
	}
	d := r.errors.Report(diag.WrongShape, node.Span(), "%s must be a %s, and this is %s", what, kind, got)
	switch {
	case kind == syntax.Sequence && what != stepList && node.Kind == syntax.Scalar && !node.IsNull():
		d.WithHint("[%s]", node.Value)
	case kind == syntax.Sequence && what == stepList && node.Kind == syntax.Mapping:
		d.WithHint("each step begins with a dash")
	}
	return false
}

// required returns the value of a key, or reports its absence.
func (r *reader) required(node *syntax.Node, name, what string) *syntax.Node {
	value := node.Get(name)
	if value == nil {
		r.errors.Report(diag.MissingKey, node.Span(), "%s needs the key %q", what, name)
	}
	return value
}

// text returns a scalar.
func (r *reader) text(node *syntax.Node) *syntax.Node {
	if node == nil || !r.kind(node, syntax.Scalar, "this") {
		return nil
	}
	return node
}

// stepList is what messages call a list of steps.
const stepList = "the steps"

// list returns the items of a list.  An absent list has none, an empty one is an error: it is a mistake
// that looks like a test.
func (r *reader) list(node *syntax.Node, what string) []*syntax.Node {
	if node == nil || !r.kind(node, syntax.Sequence, what) {
		return nil
	}
	if len(node.Items) == 0 && what == stepList {
		r.errors.Report(diag.EmptyList, node.Span(), "there are no steps here, so this tests nothing")
		return nil
	}
	if len(node.Items) == 0 {
		r.errors.Report(diag.EmptyList, node.Span(), "%s: the list is empty", what).WithHint("leave the key out")
	}
	return node.Items
}

// words returns the scalars of a list.
func (r *reader) words(node *syntax.Node, what string) []*syntax.Node {
	var words []*syntax.Node
	for _, item := range r.list(node, what) {
		if r.kind(item, syntax.Scalar, "an item of "+what) {
			words = append(words, item)
		}
	}
	return words
}

// NameForm is what can be named: a word of letters, digits and underscores, as expressions need it.
const NameForm = `^[A-Za-z_][A-Za-z0-9_]*$`

var identifier = regexp.MustCompile(NameForm)

// reserved words mean something to expressions.
var reserved = map[string]bool{
	"true": true, "false": true, "nil": true, "null": true, "in": true, "not": true, "and": true, "or": true,
	"matches": true, "contains": true, "startsWith": true, "endsWith": true, "let": true, "if": true, "else": true,
	"self": true, "env": true,
}

// name checks that a node can be a name.
func (r *reader) name(node *syntax.Node) bool {
	switch {
	case node.Kind != syntax.Scalar || !identifier.MatchString(node.Value):
		r.errors.Report(diag.BadName, node.Span(), "%q cannot be a name", node.Value).
			WithHint("a name has letters, digits and _, and does not begin with a digit")
	case reserved[node.Value]:
		r.errors.Report(diag.BadName, node.Span(), "%q means something else in expressions", node.Value).
			WithHint("choose another name")
	default:
		return true
	}
	return false
}

// IsName tells whether a word can be a name.
func IsName(text string) bool { return identifier.MatchString(text) && !reserved[text] }
