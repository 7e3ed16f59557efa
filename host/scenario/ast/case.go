package ast

import (
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/tags"
)

func (r *reader) cases(node *syntax.Node) (cases []*Case) {
	for _, item := range r.list(node, "cases") {
		c := &Case{}
		if r.read(item, caseSection, c) && c.Name != nil {
			cases = append(cases, c)
		}
	}
	return cases
}

func (r *reader) xfail(node *syntax.Node) *XFail {
	xfail := &XFail{}
	if node == nil || !r.read(node, xfailSection, xfail) {
		return nil
	}
	if raises := node.Get("raises"); raises != nil && r.mapping(raises, "raises") {
		r.keys(raises, raisesKeys)
		if xfail.Raises = raises; len(raises.Pairs) == 0 {
			r.errors.Report(diag.MissingKey, raises.Span(), "raises says nothing of the failure").WithHint(
				"%s", diag.ThereAre(Names(raisesKeys)),
			)
		}
	}
	return xfail
}

// The types of parameters of a file, and those that only fragments have.
var (
	fileParamTypes     = Names(paramTypes[:len(paramTypes)-1])
	fragmentParamTypes = Names(paramTypes)
)

// typesElsewhere are words of other languages for types of parameters.
var typesElsewhere = map[string]string{
	"integer": "int", "number": "int", "boolean": "bool", "str": "string", "text": "string", "time": "duration",
}

// paramTypes are the types of parameters with how their values are written; the last is one of fragments only.
var paramTypes = []Key{
	{"int", "an integer: 10, 0x1f, 0o17, 0b101, 1_000_000"},
	{
		"size",
		"bytes, alone or with a unit: 4096, 4KiB, 1.5MiB; KiB, MiB, GiB and TiB are powers of 1024, kB, MB, GB " +
			"and TB of 1000",
	},
	{"duration", "a time with its unit, ns, us, ms, s, m or h: 250ms, 1m30s; 0 needs none"},
	{
		"rate",
		"bits a second, 100Gbit/s; the units are " + strings.Join(quantity.Names(quantity.RateUnits()), ", ") +
			"; things a second are an int",
	},
	{
		"sizes",
		"a list of sizes, [64, 4KiB], or the powers of two {pow2: [2, 8MiB]}; on the command line 64,4KiB or 2..8MiB",
	},
	{"string", "any text"},
	{"enum", "one of the words in values"},
	{"bool", "true or false"},
	{"role", "the name of a role"},
	{"map", "in fragments: a mapping, which replaces $(name)"},
}

func (r *reader) params(node *syntax.Node, types []string) (params []*Param) {
	if node == nil {
		return nil
	}
	r.named(node, "params", func(name, value *syntax.Node) {
		param := &Param{Name: name}
		if r.read(value, paramSection, param) && param.Type != nil && r.param(param, value, types) {
			params = append(params, param)
		}
	})
	return params
}

// param checks what the type of a parameter decides.
func (r *reader) param(p *Param, node *syntax.Node, types []string) bool {
	kind := p.Type.Value
	if !slices.Contains(types, kind) {
		p.Untyped = true
		wrong := r.errors.Report(diag.NotOneOf, p.Type.Span(), "no type of parameter is called %q", kind)
		if meant := typesElsewhere[kind]; meant != "" {
			wrong.WithHint("did you mean %q?", meant)
		} else {
			wrong.WithOneOf(kind, types)
		}
		return true
	}
	if kind == "enum" {
		p.Values = r.words(r.required(node, "values", "an enum"), "values")
	} else if values := node.Key("values"); values != nil {
		r.errors.Report(diag.Misplaced, values.Span(), "only an enum has \"values\"")
	}
	for _, bound := range []string{"min", "max"} {
		if at := node.Key(bound); at != nil && !p.Bounded() {
			r.errors.Report(diag.Misplaced, at.Span(), "a parameter of type %s has no %q", kind, bound)
		}
	}
	return true
}

// Bounded reports whether values of the parameter can have bounds.
func (p *Param) Bounded() bool {
	return slices.Contains([]string{"int", "size", "duration"}, p.Type.Value)
}

// Matrix is lists of values; each combination is a case.
type Matrix struct {
	Node *syntax.Node
	Axes []Axis
	// Exclude are combinations, also partial ones, that are left out.
	Exclude []*syntax.Node
}

// Axis is one name with its values.
type Axis struct {
	Name   *syntax.Node // the key
	Values []*syntax.Node
}

// Named is the key of a name that the matrix has; nil for any other word, and of no matrix.
func (m *Matrix) Named(name string) *syntax.Node {
	if m == nil {
		return nil
	}
	for _, axis := range m.Axes {
		if axis.Name.Value == name {
			return axis.Name
		}
	}
	return nil
}

// excludeKey is the key of a matrix that is no axis.
const excludeKey = "exclude"

func (r *reader) matrix(node *syntax.Node) *Matrix {
	if !r.mapping(node, "matrix") {
		return nil
	}
	m := &Matrix{Node: node}
	var names []string
	for _, pair := range node.Pairs {
		if pair.Key.Value == excludeKey || !r.name(pair.Key) {
			continue
		}
		names = append(names, pair.Key.Value)
		m.Axes = append(m.Axes, Axis{pair.Key, r.words(pair.Value, "the values of "+pair.Key.Value)})
	}
	if len(m.Axes) == 0 {
		r.errors.Report(diag.EmptyList, node.Span(), "a matrix without values").WithHint("matrix: {depth: [0, 1, 16]}")
	}
	for _, item := range r.list(node.Get(excludeKey), excludeKey) {
		if !r.mapping(item, "an item of exclude") {
			continue
		}
		good := true
		for _, pair := range item.Pairs {
			if !slices.Contains(names, pair.Key.Value) {
				r.errors.Report(diag.UnknownKey, pair.Key.Span(), "the matrix has no %q", pair.Key.Value).
					WithOneOf(pair.Key.Value, names)
				good = false
			}
			good = r.kind(pair.Value, syntax.Scalar, "a value of exclude") && good
		}
		if good {
			m.Exclude = append(m.Exclude, item)
		}
	}
	return m
}

// stepTags reads the tags of a step: a list of words, or a mapping of names to values.
func (r *reader) stepTags(node *syntax.Node) []syntax.Pair {
	switch {
	case node == nil:
		return nil
	case node.Kind == syntax.Sequence:
		var tags []syntax.Pair
		for _, word := range r.words(node, "tags") {
			if r.tag(word) {
				tags = append(tags, syntax.Pair{Key: word})
			}
		}
		return tags
	case node.Kind != syntax.Mapping:
		r.errors.Report(
			diag.WrongShape, node.Span(), "tags are a list of words or a mapping, and this is a %s", node.Kind,
		).
			WithHint("tags: [smoke], or tags: {test: write_bw}")
		return nil
	}
	var tags []syntax.Pair
	for _, pair := range node.Pairs {
		if r.tag(pair.Key) && r.kind(pair.Value, syntax.Scalar, "the value of a tag") {
			tags = append(tags, pair)
		}
	}
	return tags
}

func (r *reader) tag(node *syntax.Node) bool {
	if tags.IsTag(node.Value) {
		return true
	}
	r.errors.Report(diag.BadName, node.Span(), "%q cannot be a tag", node.Value).
		WithHint("a tag has letters, digits, _ . : and -")
	return false
}

// constantTags are the tags without expressions: they are the same in each round of a loop.
func constantTags(tags []syntax.Pair) []syntax.Pair {
	return slices.DeleteFunc(slices.Clone(tags), func(tag syntax.Pair) bool {
		return tag.Value != nil && expression.Contains(tag.Value.Value)
	})
}
