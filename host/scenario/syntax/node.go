package syntax

import (
	"rdmarun/host/scenario/diag"
)

// Kind is what a node is.
type Kind int

const (
	Scalar Kind = iota
	Mapping
	Sequence
)

// String is the word that messages use.
func (k Kind) String() string {
	switch k {
	case Mapping:
		return "mapping"
	case Sequence:
		return "list"
	default:
		return "value"
	}
}

// Style is how a scalar was written.  Only a plain scalar can be a number, a boolean or null.
type Style int

const (
	Plain Style = iota
	SingleQuoted
	DoubleQuoted
	Literal
	Folded
)

// Node is one value of a file.  Aliases are resolved: two places may share one node.
type Node struct {
	Kind     Kind
	Style    Style
	Value    string // of a scalar
	Pairs    []Pair // of a mapping, in the file's order
	Items    []*Node
	Source   *diag.Source
	Position diag.Position
}

// Pair is one entry of a mapping; its key is a scalar.
type Pair struct{ Key, Value *Node }

// Get returns the value of a key, or nil.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for _, pair := range n.Pairs {
		if pair.Key.Value == key {
			return pair.Value
		}
	}
	return nil
}

// Key returns the node of a key itself, or nil.
func (n *Node) Key(key string) *Node {
	if n == nil {
		return nil
	}
	for _, pair := range n.Pairs {
		if pair.Key.Value == key {
			return pair.Key
		}
	}
	return nil
}

// IsNull tells whether the node is an absent value: empty, "~" or "null".
func (n *Node) IsNull() bool {
	if n.Kind != Scalar || n.Style != Plain {
		return false
	}
	return n.Value == "" || n.Value == "~" || n.Value == "null"
}

// Span is the stretch of the file that a message about the node points at: the scalar, or the first
// character of a mapping or list.
func (n *Node) Span() diag.Span {
	width := 1
	if n.Kind == Scalar && n.Style != Literal && n.Style != Folded {
		width = n.rawWidth()
	}
	return n.Source.At(n.Position, width)
}

// New makes a scalar that stands in no file, for values from a command line.
func New(source *diag.Source, value string) *Node {
	return &Node{Kind: Scalar, Value: value, Source: source, Position: diag.Position{Line: 1, Column: 1}}
}
