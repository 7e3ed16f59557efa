// Package syntax turns the bytes of a scenario into a tree of nodes with positions.
//
// It is the only package that imports a YAML library. The library's own error positions are not reliable: an unclosed
// "[" is reported on line 1, "a: b: c" without any line. So syntax finds the place itself. It also checks for what the
// library accepts: duplicate keys, several documents, tags, and aliases that expand without end.
package syntax

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"rdmarun/host/scenario/diag"
)

// Limits keep a hostile or mistaken file from taking more than a moment and a little memory.
const (
	// MaxBytes is the size of a file: forty thousand lines of scenario.
	MaxBytes = 2 << 20
	// maxDepth is how deep mappings and lists nest; people stop at a dozen.
	maxDepth = 100
	// maxNodes is how many nodes a file has once its aliases are expanded.
	maxNodes = 500_000
)

// Parse returns the root of a file, or nil and at least one diagnostic in errors.  A tree can come
// with diagnostics (duplicate keys): it is still worth checking further.
func Parse(source *diag.Source, errors *diag.List) *Node {
	if !isText(source, errors) {
		return nil
	}
	root, second, err := decode(source.Text)
	if err != nil {
		errors.Add(explain(source, err))
		return nil
	}
	if root == nil {
		errors.Report(diag.Empty, source.Start(), "the file is empty").
			WithHint("a scenario begins with: rdmarun: v1")
		return nil
	}
	if second != nil {
		at := diag.Position{Line: max(second.Line, 1), Column: max(second.Column, 1)}
		errors.Report(diag.SeveralDocs, source.At(at, 1), "a scenario is one document, and here a second one begins").
			WithHint("put it in a file of its own")
	}
	c := converter{source: source, errors: errors, done: make(map[*yaml.Node]*Node)}
	node := c.convert(root, 0)
	if c.full {
		return nil // what was left out would only cause further errors
	}
	return node
}

// binaryHead is how many bytes of a file are searched for a zero, which no text has.
const binaryHead = 512

// firstKey is the key that scenarios and lab files begin with, in a line of its own, with its value.
var firstKey = regexp.MustCompile(`(?m)^rdmarun:[ \t]*(\S*)`)

// IsScenario reports whether a text has the key that scenarios begin with, and is not a lab file.
func IsScenario(text []byte) bool {
	match := firstKey.FindSubmatch(bytes.TrimPrefix(text, []byte("\ufeff"))) // some editors begin a file so
	return match != nil && !IsLab(string(match[1]))
}

// IsLab reports whether a version is that of lab files, "lab/v1".
func IsLab(version string) bool { return strings.HasPrefix(version, "lab/") }

// decode reads up to two documents; root is nil when there is none.
func decode(text string) (root, second *yaml.Node, err error) {
	decoder := yaml.NewDecoder(strings.NewReader(text))
	var first yaml.Node
	if err := decoder.Decode(&first); errors.Is(err, io.EOF) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, err
	}
	if len(first.Content) == 0 {
		return nil, nil, nil
	}
	root = first.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		root = nil
	}
	var next yaml.Node
	switch err := decoder.Decode(&next); {
	case errors.Is(err, io.EOF):
		return root, nil, nil
	case err != nil:
		return nil, nil, err
	}
	return root, &next, nil
}

// isText refuses what no YAML parser should see, with the exact place.
func isText(source *diag.Source, errors *diag.List) bool {
	text := source.Text
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		errors.Report(diag.NotText, source.Start(), "the file is UTF-16, and scenarios are UTF-8").
			WithHint("iconv -f UTF-16 -t UTF-8 %s", source.Name)
		return false
	}
	if head := text[:min(len(text), binaryHead)]; strings.IndexByte(head, 0) >= 0 && !IsScenario([]byte(head)) {
		errors.Report(
			diag.NotText, source.Start(), "the file is binary: its first %d bytes have a zero byte",
			min(len(text), binaryHead),
		).
			WithHint("a scenario is YAML text; a guest is run by: rdmarun guest run %s", source.Name)
		return false
	}
	if len(text) > MaxBytes {
		errors.Report(diag.TooLarge, source.Start(), "the file has more than %dMiB", MaxBytes>>20).
			WithHint("a scenario is a page or two; large data belongs in a file of its own")
		return false
	}
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			errors.Report(diag.NotText, source.At(source.Position(i), 1), "byte 0x%02x is not UTF-8", text[i])
			return false
		case r < ' ' && r != '\n' && r != '\r' && r != '\t', r == 0x7f:
			errors.Report(diag.NotText, source.At(source.Position(i), 1), "a control character (0x%02x)", text[i]).
				WithHint("in a double-quoted string it is written \"\\x%02x\"", text[i])
			return false
		}
		i += size
	}
	return true
}

// converter makes nodes of the library's nodes.
type converter struct {
	source *diag.Source
	errors *diag.List
	// done has the finished nodes that have an anchor, and nil for unfinished ones. An alias to one of the latter
	// is inside of the node that it names.
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

// convert returns nil for a node that cannot be part of a scenario, after reporting it.
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
		c.errors.Report(diag.AliasExpansion, at, "*%s is inside of what it names, so it has no end", n.Value)
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
			c.errors.Report(
				diag.DuplicateKey, key.Span(), "%q is in this mapping already, in line %d", key.Value,
				earlier.Position.Line,
			).
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
		c.errors.Report(
			diag.YAMLFeature, c.source.At(c.position(n), 2), "merge keys (<<) are not part of the scenario language",
		).
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
