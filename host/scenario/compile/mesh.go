package compile

import (
	"fmt"
	"slices"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/jsonschema"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// instances compiles the name of a counted role: the names of its instances, of which there must be two.
func (d *decoder) instances(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := d.scalar(argument, node, at)
	if value == nil || d.abstract {
		return value
	}
	known, is := value.Constant()
	if !is {
		return &Value{Span: value.Span, compute: func(env expression.Env) (any, error) {
			name, err := value.Get(env)
			if err != nil {
				return nil, err
			}
			names, bad := d.instancesOf(name.(string))
			return names, orNil(bad)
		}}
	}
	names, bad := d.instancesOf(known.(string))
	if bad != nil {
		return d.report(bad, value.Span)
	}
	return constant(names, value.Span)
}

// orNil is a problem as an error.
func orNil(bad *problem) error {
	if bad == nil {
		return nil
	}
	return bad
}

// instancesOf are the names of the instances of a role that can be the nodes of a mesh.
func (rs *resolver) instancesOf(name string) ([]string, *problem) {
	r := rs.roles[name]
	switch {
	case r == nil:
		return nil, rs.noRole(name)
	case r.executable != steps:
		return nil, diag.Wrong(
			diag.WrongRole, fmt.Sprintf("%q is %s, which works for itself", name, r.executable), "",
		)
	case r.group != nil:
		return nil, diag.Wrong(
			diag.WrongRole, fmt.Sprintf("a mesh is of all instances of a role, and %q is one of them", name),
			"role: "+r.group.name,
		)
	case len(r.instances) < 2:
		return nil, diag.Wrong(diag.WrongRole, fmt.Sprintf(
			"a mesh needs a role of two instances at least, and %q is one party", name,
		),
			"roles: {"+name+": {count: 4}} makes some")
	}
	names := make([]string, len(r.instances))
	for i, instance := range r.instances {
		names[i] = instance.name
	}
	return names, nil
}

// seedKey is the key next to the number of random pairs.
const seedKey = "seed"

// pairs compiles the pairs of a mesh: a word, {random: K}, {incast: N}, or a list.
func (d *decoder) pairs(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	switch node.Kind {
	case syntax.Mapping:
		return d.countedPairs(argument, node, at)
	case syntax.Sequence:
		if len(node.Items) == 0 {
			return d.refuse(diag.EmptyList, node.Span(), "", "%s without a pair", argument.Name)
		}
		return d.list(node, func(item *syntax.Node) *Value { return d.pairOf(argument, item, at) },
			func(values []any) (any, error) {
				list := make([][2]string, len(values))
				for i, value := range values {
					list[i] = value.([2]string)
				}
				return verb.MeshPairs{List: list}, nil
			})
	}
	word := &verb.Argument{Name: argument.Name, Type: verb.Word, Words: verb.MeshPatterns()}
	value := d.scalar(word, node, at)
	if value == nil {
		return nil
	}
	return d.combined(value.Span, []*Value{value}, func(values []any) (any, error) {
		return verb.MeshPairs{Pattern: values[0].(string)}, nil
	})
}

// countedPairs compiles {random: K}, which may have a seed, and {incast: N}.
func (d *decoder) countedPairs(argument *verb.Argument, node *syntax.Node, at place) *Value {
	fields := []verb.Argument{{Name: seedKey, Type: verb.Unsigned}}
	for _, name := range verb.MeshCounts() {
		fields = append(fields, verb.Argument{Name: name, Type: verb.Integer, Min: 1, Max: maxInstances})
	}
	names, parts := d.keyed(fields, node, at, argument.Name+" has no pattern")
	if len(parts) < len(node.Pairs) {
		return nil // it is reported
	}
	patterns := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == seedKey })
	if len(patterns) != 1 || len(names) > 1 && patterns[0] != "random" {
		return d.refuse(
			diag.WrongShape, node.Span(), "{random: 4}, {random: 4, seed: 7} or {incast: 3}",
			"%s is one pattern with its number", argument.Name,
		)
	}
	return d.combined(node.Span(), parts, func(values []any) (any, error) {
		given := byName(names, values)
		pairs := verb.MeshPairs{Pattern: patterns[0], Count: given[patterns[0]].(int)}
		if seed, has := given[seedKey]; has {
			pairs.Seed = seed.(uint64)
		}
		return pairs, nil
	})
}

// pairOf compiles a pair of a list: two instances, by their names, or by their numbers in the step's role.
func (d *decoder) pairOf(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Sequence || len(node.Items) != 2 {
		return d.refuse(diag.WrongShape, node.Span(), "[[0, 1], [2, 3]]", "a pair is a list of two instances")
	}
	end := &verb.Argument{Name: argument.Name, Type: verb.Any}
	return d.list(node, func(item *syntax.Node) *Value { return d.scalar(end, item, at) },
		func(values []any) (any, error) {
			return [2]string{fmt.Sprint(values[0]), fmt.Sprint(values[1])}, nil
		})
}

func pairsSchema(*verb.Argument) object {
	properties := object{seedKey: jsonschema.Ref("integer")}
	for _, name := range verb.MeshCounts() {
		properties[name] = jsonschema.Ref("integer")
	}
	return object{"anyOf": []any{
		jsonschema.Word(verb.MeshPatterns()),
		object{"type": "object", "minProperties": 1, "properties": properties, "additionalProperties": false},
		jsonschema.ListOf(jsonschema.Pair(jsonschema.Scalar())),
	}}
}
