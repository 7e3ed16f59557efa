package ast

import (
	"slices"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

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
	if node == nil || !r.mapping(node, "matrix") {
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
					WithHint("%s", suggestOrList(pair.Key.Value, names))
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
