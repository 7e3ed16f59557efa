package syntax

import (
	"gopkg.in/yaml.v3"

	"rdmarun/host/scenario/diag"
)

// converter makes nodes of the library's nodes.
type converter struct {
	source *diag.Source
	errors *diag.List
	// done holds the finished nodes that have an anchor, and nil for those in work: an alias to one of
	// the latter stands inside of what it names.
	done map[*yaml.Node]*Node
	// size is the number of nodes with aliases expanded: what a walk over the tree will visit.
	size  int
	sizes map[*yaml.Node]int
	// full is set once the tree is too large; the rest is left out.
	full bool
	// spare are nodes made in one piece: making each takes the allocator longer than what is put into them.
	spare []Node
}

func (c *converter) node(n *yaml.Node) *Node {
	if len(c.spare) == 0 {
		c.spare = make([]Node, 64)
	}
	node := &c.spare[0]
	c.spare = c.spare[1:]
	node.Source, node.Position = c.source, c.position(n)
	return node
}

func (c *converter) position(n *yaml.Node) diag.Position {
	return diag.Position{Line: max(n.Line, 1), Column: max(n.Column, 1)}
}

// convert returns nil for what cannot be part of a scenario, after saying so.
func (c *converter) convert(n *yaml.Node, depth int) *Node {
	at := c.source.At(c.position(n), 1)
	if c.full {
		return nil
	}
	if depth > maxDepth {
		c.full = true
		c.errors.Report(diag.TooDeep, at, "mappings and lists nest deeper than %d levels here", maxDepth)
		return nil
	}
	if n.Kind == yaml.AliasNode {
		return c.alias(n, at)
	}
	if c.size++; c.size > maxNodes {
		c.full = true
		c.errors.Report(diag.AliasExpansion, at, "the file has more than %d values, aliases expanded", maxNodes)
		return nil
	}
	c.checkTag(n, at)
	if n.Anchor != "" {
		c.done[n] = nil
	}
	before := c.size
	node := c.node(n)
	switch n.Kind {
	case yaml.MappingNode:
		node.Kind = Mapping
		c.pairs(node, n, depth)
	case yaml.SequenceNode:
		node.Kind = Sequence
		node.Items = make([]*Node, 0, len(n.Content))
		for _, item := range n.Content {
			if converted := c.convert(item, depth+1); converted != nil {
				node.Items = append(node.Items, converted)
			}
		}
	default:
		node.Value, node.Style = n.Value, style(n)
	}
	if n.Anchor != "" {
		if c.sizes == nil {
			c.sizes = make(map[*yaml.Node]int)
		}
		c.sizes[n] = c.size - before + 1
		c.done[n] = node
	}
	return node
}

func (c *converter) alias(n *yaml.Node, at diag.Span) *Node {
	at.Width = len(n.Value) + 1
	node, known := c.done[n.Alias]
	switch {
	case known && node == nil:
		c.full = true
		c.errors.Report(diag.AliasExpansion, at, "*%s stands inside of what it names, so it has no end", n.Value)
		return nil
	case !known:
		return nil // the anchor stood in a part that was refused
	}
	// The node is shared, but a walk over the tree visits it once for each alias.
	if c.size += c.sizes[n.Alias]; c.size > maxNodes {
		c.full = true
		c.errors.Report(diag.AliasExpansion, at, "with *%s the file expands to more than %d values", n.Value, maxNodes).
			WithHint("aliases of aliases multiply; use a fragment")
		return nil
	}
	return node
}

func (c *converter) pairs(node *Node, n *yaml.Node, depth int) {
	first := make(map[string]*Node, len(n.Content)/2)
	node.Pairs = make([]Pair, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := c.key(n.Content[i])
		if key == nil {
			continue
		}
		if earlier := first[key.Value]; earlier != nil {
			c.errors.Report(diag.DuplicateKey, key.Span(), "%q stands in this mapping already, in line %d", key.Value, earlier.Position.Line).
				WithHint("one of the two would be lost; remove one")
			continue
		}
		first[key.Value] = key
		if value := c.convert(n.Content[i+1], depth+1); value != nil {
			node.Pairs = append(node.Pairs, Pair{key, value})
		}
	}
}

func (c *converter) key(n *yaml.Node) *Node {
	at := c.source.At(c.position(n), 1)
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag == "!!merge":
		c.errors.Report(diag.YAMLFeature, c.source.At(c.position(n), 2), "merge keys (<<) are not part of the scenario language").
			WithHint("repeat the keys, or put the steps into a fragment with parameters")
		return nil
	case n.Kind != yaml.ScalarNode:
		c.errors.Report(diag.YAMLFeature, at, "a key must be a word").
			WithHint("quotes make a word of it")
		return nil
	}
	c.checkTag(n, at)
	node := c.node(n)
	node.Value, node.Style = n.Value, style(n)
	return node
}

// checkTag refuses explicit tags: a scenario's types come from its language.
func (c *converter) checkTag(n *yaml.Node, at diag.Span) {
	if n.Style&yaml.TaggedStyle == 0 {
		return
	}
	at.Width = len(n.Tag)
	c.errors.Report(diag.YAMLFeature, at, "the tag %s is not part of the scenario language", n.Tag).
		WithHint("leave it out; quotes make a string")
}

func style(n *yaml.Node) Style {
	switch {
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return DoubleQuoted
	case n.Style&yaml.SingleQuotedStyle != 0:
		return SingleQuoted
	case n.Style&yaml.LiteralStyle != 0:
		return Literal
	case n.Style&yaml.FoldedStyle != 0:
		return Folded
	}
	return Plain
}
