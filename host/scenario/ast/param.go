package ast

import (
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
)

// The types of parameters of a file, and those that only fragments have.
var (
	fileParamTypes     = names(paramTypes[:len(paramTypes)-1])
	fragmentParamTypes = names(paramTypes)
)

// paramTypes are the types of parameters with how their values are written; the last is one of fragments only.
var paramTypes = []key{
	{"int", "an integer: 10, 0x1f, 0o17, 0b101, 1_000_000"},
	{"size", "bytes, alone or with a unit: 4096, 4KiB, 1.5MiB; B, KiB, MiB, GiB and TiB are powers of 1024, kB, MB, GB and TB of 1000"},
	{"duration", "a time with its unit, ns, us, ms, s, m or h: 250ms, 1m30s; 0 needs none"},
	{"rate", "bits a second, 100Gbit/s; the units are " + strings.Join(quantity.Names(quantity.RateUnits()), ", ") + "; things a second are an int"},
	{"sizes", "a list of sizes, [64, 4KiB], or the powers of two {pow2: [2, 8MiB]}; on the command line 64,4KiB or 2..8MiB"},
	{"string", "any text"},
	{"enum", "one of the words in values"},
	{"bool", "true or false"},
	{"role", "the name of a role"},
	{"map", "in fragments: a mapping, which stands where $(name) stands"},
}

var paramKeys = []key{
	{"type", strings.Join(names(paramTypes[:len(paramTypes)-1]), ", ") + "; in fragments also map"},
	{"default", "the value when none is given"},
	{"min", "smallest value"},
	{"max", "largest value"},
	{"values", "the words of an enum"},
	{"doc", "what it is"},
}

func (r *reader) params(node *syntax.Node, types []string) []*Param {
	if node == nil || !r.mapping(node, "params") {
		return nil
	}
	var params []*Param
	for _, pair := range node.Pairs {
		if !r.name(pair.Key) || !r.mapping(pair.Value, "a parameter") {
			continue
		}
		if param := r.param(pair.Key, pair.Value, types); param != nil {
			params = append(params, param)
		}
	}
	return params
}

func (r *reader) param(name, node *syntax.Node, types []string) *Param {
	r.keys(node, paramKeys)
	typeNode := r.text(r.required(node, "type", "a parameter"))
	if typeNode == nil {
		return nil
	}
	if !slices.Contains(types, typeNode.Value) {
		hint := diag.DidYouMean(typeNode.Value, types)
		if hint == "" {
			hint = diag.ThereAre(types)
		}
		r.errors.Report(diag.NotOneOf, typeNode.Span(), "no type of parameter is called %q", typeNode.Value).WithHint("%s", hint)
		return nil
	}
	p := &Param{
		Name:    name,
		Type:    typeNode.Value,
		Default: node.Get("default"),
		Min:     r.text(node.Get("min")),
		Max:     r.text(node.Get("max")),
		Doc:     r.text(node.Get("doc")),
	}
	if p.Type == "enum" {
		p.Values = r.words(r.required(node, "values", "an enum"), "values")
	} else if values := node.Key("values"); values != nil {
		r.errors.Report(diag.Misplaced, values.Span(), "only an enum has \"values\"")
	}
	for _, bound := range []string{"min", "max"} {
		if at := node.Key(bound); at != nil && p.Type != "int" && p.Type != "size" && p.Type != "duration" {
			r.errors.Report(diag.Misplaced, at.Span(), "a parameter of type %s has no %q", p.Type, bound)
		}
	}
	return p
}
