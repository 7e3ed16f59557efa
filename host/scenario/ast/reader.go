package ast

import (
	"reflect"
	"regexp"
	"strings"

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

// maxName bounds a name, in bytes.
const maxName = 128

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
	case len(node.Value) > maxName: // reports, packets' files and messages to other hosts contain it
		r.errors.Report(diag.BadName, node.Span(), "a name of %d bytes is too long", len(node.Value)).
			WithHint("at most %d", maxName)
	case reserved[node.Value]:
		r.errors.Report(diag.BadName, node.Span(), "%q means something else in expressions", node.Value).
			WithHint("choose another name")
	default:
		return true
	}
	return false
}

// IsName reports whether a word can be a name.
func IsName(text string) bool { return identifier.MatchString(text) && !reserved[text] }

// Key is a key of a mapping and what it is for.
type Key struct{ Name, Doc string }

// section is a mapping of a file; its keys are the fields of a struct.  Their tags are the only place for the keys, so
// that the checker, the JSON Schema and `rdmarun explain` cannot differ:
//
//	Size *syntax.Node `key:"size,required" doc:"bytes"`
//
// A node is a scalar, nodes are a list of scalars, and any other field is what the reader makes of its Go type.  These
// options may follow the name:
//
//	required  the key must be there
//	any       the node may be of any kind: package compile checks it
//	empty     the list may be empty
//	later     the key has a meaning only with others, and code below reads it
type section struct {
	what   string // in messages
	keys   []Key
	fields []sectionField
}

type sectionField struct {
	name                        string
	index                       []int
	required, any, empty, later bool
	of                          []string // of a key of a step, the actions that it belongs to; none: all
}

// sectionOf reads the tags of a struct.
func sectionOf[T any](what string) *section {
	s := &section{what: what}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		tag, tagged := field.Tag.Lookup("key")
		if !tagged {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		s.keys = append(s.keys, Key{name, field.Tag.Get("doc")})
		s.fields = append(s.fields, sectionField{
			name: name, index: field.Index,
			required: options == "required", any: options == "any", empty: options == "empty",
			later: options == "later",
			of:    strings.Fields(field.Tag.Get("of")),
		})
	}
	return s
}

// field is the row of a key; nil for one that the section does not have.
func (s *section) field(name string) *sectionField {
	for i := range s.fields {
		if s.fields[i].name == name {
			return &s.fields[i]
		}
	}
	return nil
}

// read fills a struct from a mapping that has the keys of a section; false for what is no mapping.
func (r *reader) read(node *syntax.Node, s *section, into any) bool {
	if !r.mapping(node, s.what) {
		return false
	}
	r.keys(node, s.keys)
	to := reflect.ValueOf(into).Elem()
	for _, field := range s.fields {
		value := node.Get(field.name)
		if field.required {
			if diag.Misspelled(field.name, node.Keys(), Names(s.keys)) {
				continue // it is reported as an unknown key
			}
			value = r.required(node, field.name, s.what)
		}
		if value != nil && !field.later {
			r.field(field, value, to.FieldByIndex(field.index).Addr().Interface())
		}
	}
	return true
}

// field reads the value of a key as what the field is.
func (r *reader) field(field sectionField, value *syntax.Node, to any) {
	switch to := to.(type) {
	case **syntax.Node:
		if *to = value; !field.any {
			*to = r.text(value)
		}
	case *[]*syntax.Node:
		if !field.empty || value.Kind != syntax.Sequence || len(value.Items) > 0 {
			*to = r.words(value, field.name)
		}
	case *[]*Step:
		*to = r.steps(value)
	case *[]*Case:
		*to = r.cases(value)
	case *[]*Param:
		*to = r.params(value, fileParamTypes)
	case *[]*Role:
		*to = r.roles(value)
	case *[]*Fragment:
		*to = r.fragments(value)
	case *[]*Fixture:
		*to = r.fixtures(value)
	case *[]*Import:
		*to = r.imports(value)
	case *[]*Threshold:
		*to = r.thresholds(value)
	case **Matrix:
		*to = r.matrix(value)
	case **XFail:
		*to = r.xfail(value)
	case **Guest:
		*to = r.guest(value)
	case **Program:
		*to = r.program(value)
	case **Provider:
		*to = r.provider(value)
	case **Defaults:
		*to = r.defaults(value)
	case **Allow:
		if allow := (&Allow{Node: value}); r.read(value, allowSection, allow) {
			*to = allow
		}
	case *Limits:
		r.read(value, limitSection, to)
	}
}

// Mapping is a mapping of a file with its keys.
type Mapping struct {
	// Name is the key that it is the value of, Of what has the keys.
	Name, Of string
	Keys     []Key
}

// Mappings lists the mappings of a file, from the outermost to the innermost.
func Mappings() []Mapping {
	return []Mapping{
		{"file", "a file", fileSection.keys},
		{"params", "a parameter", paramSection.keys},
		{"matrix", "a matrix", matrixKeys},
		{"provider", "provider", providerKeys},
		{"soft", "the soft provider", softSection.keys},
		{"verbs", "the verbs provider", verbsSection.keys},
		{"defaults", "defaults", defaultsKeys},
		{"roles", "a role", roleSection.keys},
		{"buffers", "a buffer", bufferSection.keys},
		{"path", "path", pathKeys},
		{"place", "place", placeKeys},
		{"guest", "a guest", guestSection.keys},
		{"program", "a program", programSection.keys},
		{"input", "what a guest or a program reads", inputKeys},
		{"allow", "what a guest may do", allowSection.keys},
		{"limits", "a guest's limits", limitSection.keys},
		{"cases", "a case", caseSection.keys},
		{"xfail", "xfail", xfailSection.keys},
		{"raises", "the failure that xfail expects", raisesKeys},
		{"fragments", "a fragment", fragmentSection.keys},
		{"fixtures", "a fixture", fixtureSection.keys},
		{"thresholds", "a threshold", thresholdSection.keys},
		{"abort_on_fail", "abort_on_fail", abortKeys},
		{"action", "a step without a verb", keysOf(actions, func(a actionRow) Key { return a.Key })},
		{"step", "a step", stepSection.keys},
		{"took", "took", tookKeys},
		{"repeat", "repeat", repeatKeys},
		{"stages", "a stage of repeat", rateStageKeys},
		{"type", "a parameter's type", paramTypes},
	}
}

// Keys are the keys of a mapping of Mappings.
func Keys(name string) []Key {
	for _, mapping := range Mappings() {
		if mapping.Name == name {
			return mapping.Keys
		}
	}
	return nil
}

// Names are those of keys.
func Names(keys []Key) []string {
	list := make([]string, len(keys))
	for i := range keys {
		list[i] = keys[i].Name
	}
	return list
}

func keysOf[Row any](rows []Row, key func(Row) Key) []Key {
	keys := make([]Key, len(rows))
	for i := range rows {
		keys[i] = key(rows[i])
	}
	return keys
}

// keys reports the keys of a mapping that are not known.
func (r *reader) keys(node *syntax.Node, known []Key) {
	for _, pair := range node.Pairs {
		if !hasKey(known, pair.Key.Value) {
			r.errors.Report(diag.UnknownKey, pair.Key.Span(), "unknown key %q", pair.Key.Value).WithOneOf(
				pair.Key.Value, Names(known),
			)
		}
	}
}

func hasKey(keys []Key, name string) bool {
	for i := range keys {
		if keys[i].Name == name {
			return true
		}
	}
	return false
}
