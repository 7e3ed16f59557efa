package syntax

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

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

// Write writes what a value is: the same for all that are written alike, wherever they are.
func (n *Node) Write(to io.Writer) {
	fmt.Fprintf(to, "%d %d %q", n.Kind, n.Style, n.Value)
	for _, pair := range n.Pairs {
		fmt.Fprintf(to, "{%q:", pair.Key.Value)
		pair.Value.Write(to)
		fmt.Fprint(to, "}")
	}
	for _, item := range n.Items {
		fmt.Fprint(to, "[")
		item.Write(to)
		fmt.Fprint(to, "]")
	}
}

// Get returns the value of a key, or nil.
func (n *Node) Get(key string) *Node { return n.pair(key).Value }

// Key returns the node of a key itself, or nil.
func (n *Node) Key(key string) *Node { return n.pair(key).Key }

// Keys lists the keys of a mapping.
func (n *Node) Keys() []string {
	keys := make([]string, len(n.Pairs))
	for i, pair := range n.Pairs {
		keys[i] = pair.Key.Value
	}
	return keys
}

func (n *Node) pair(key string) Pair {
	if n != nil {
		for _, pair := range n.Pairs {
			if pair.Key.Value == key {
				return pair
			}
		}
	}
	return Pair{}
}

// IsNull reports whether the node is an absent value: empty, "~" or "null".
func (n *Node) IsNull() bool {
	if n.Kind != Scalar || n.Style != Plain {
		return false
	}
	return n.Value == "" || n.Value == "~" || n.Value == "null"
}

// Span is the range of the file that a message about the node points at. It is the scalar, or the first character of a
// mapping or list.
func (n *Node) Span() diag.Span {
	width := 1
	if n.Kind == Scalar && n.Style != Literal && n.Style != Folded {
		width = n.rawWidth()
	}
	return n.Source.At(n.Position, width)
}

// New makes a scalar of no file, for values from a command line.
func New(source *diag.Source, value string) *Node {
	return &Node{Kind: Scalar, Value: value, Source: source, Position: diag.Position{Line: 1, Column: 1}}
}

// rawWidth is how many characters the scalar takes in its line, quotes included.
func (n *Node) rawWidth() int {
	rest := n.restOfLine()
	switch n.Style {
	case Plain:
		if value := firstLine(n.Value); strings.HasPrefix(rest, value) {
			return utf8.RuneCountInString(value)
		}
	case SingleQuoted, DoubleQuoted:
		// Walk the escapes to the closing quote; a value of several lines ends with its first.
		width := 1
		for body := strings.TrimPrefix(rest, rest[:min(1, len(rest))]); body != ""; {
			piece, _ := n.escape(body)
			if piece == "" {
				return width + 1
			}
			width += utf8.RuneCountInString(piece)
			body = body[len(piece):]
		}
		return width
	}
	return 1
}

func (n *Node) restOfLine() string { return n.Source.Rest(n.Position) }

// escape returns how the next character of a quoted scalar is written and how many bytes of the
// value it stands for.  An empty piece is the closing quote.
func (n *Node) escape(body string) (piece string, bytes int) {
	_, size := utf8.DecodeRuneInString(body)
	switch {
	case n.Style == SingleQuoted && strings.HasPrefix(body, "''"):
		return body[:2], 1
	case n.Style == SingleQuoted && body[0] == '\'':
		return "", 0
	case n.Style == DoubleQuoted && body[0] == '"':
		return "", 0
	case n.Style == DoubleQuoted && body[0] == '\\' && len(body) > 1:
		length := 2
		switch body[1] {
		case 'x':
			length = 4
		case 'u':
			length = 6
		case 'U':
			length = 10
		}
		length = min(length, len(body))
		return body[:length], escapedBytes(body[:length])
	}
	return body[:size], size
}

// escapedBytes is the length in UTF-8 of what an escape stands for.
func escapedBytes(escape string) int {
	switch escape[1] {
	case 'N', '_': // U+0085, U+00A0
		return 2
	case 'L', 'P': // U+2028, U+2029
		return 3
	case 'x', 'u', 'U':
		r := rune(0)
		for _, digit := range escape[2:] {
			r = r<<4 | rune(strings.IndexRune("0123456789abcdef", digit|0x20)&0xf)
		}
		return max(1, utf8.RuneLen(r))
	}
	return 1
}

// Locate returns the span of value[from:to], two byte offsets into the scalar's value: where a
// message about an expression inside the scalar points.  Where folding has moved the text too far from that of the
// file, it is the scalar's own span.
func (n *Node) Locate(from, to int) diag.Span {
	return n.Locator().Locate(from, to)
}

// Locator finds several places of one scalar, in their order. Each search continues where the last one ended, so that
// all of them together read the scalar once.
type Locator struct {
	node *Node
	// body is the unread rest of a quoted scalar. column is how many characters from its beginning that is, and
	// offset how many bytes of the value are before it.
	body           string
	column, offset int
	whole          diag.Span // of the scalar, once it was asked for
}

// Locator begins with the scalar's first character.
func (n *Node) Locator() *Locator {
	l := &Locator{node: n}
	if n.Style == SingleQuoted || n.Style == DoubleQuoted {
		if rest := n.restOfLine(); rest != "" {
			l.body, l.column = rest[1:], 1
		}
	}
	return l
}

// Locate is Node.Locate; from is not less than the one before.
func (l *Locator) Locate(from, to int) diag.Span {
	n := l.node
	from, to = min(max(from, 0), len(n.Value)), min(max(to, 0), len(n.Value))
	width := max(1, utf8.RuneCountInString(n.Value[from:max(from, to)]))
	switch n.Style {
	case Plain:
		if strings.HasPrefix(n.restOfLine(), n.Value) {
			return n.Source.At(n.Source.Position(n.Source.Offset(n.Position)+from), width)
		}
	case SingleQuoted, DoubleQuoted:
		if start, ok := l.seek(from); ok {
			end := *l // what follows may begin before this ends
			if last, ok := end.seek(to); ok {
				return n.shifted(start, max(1, last-start))
			}
		}
	case Literal:
		if span, ok := n.locateLiteral(from, width); ok {
			return span
		}
	}
	if l.whole.Source == nil {
		l.whole = n.Span()
	}
	return l.whole
}

func (n *Node) shifted(by, width int) diag.Span {
	return n.Source.At(diag.Position{Line: n.Position.Line, Column: n.Position.Column + by}, width)
}

// seek advances in the written form and in the value at the same time to an offset of the value. It returns how many
// characters that is from the opening quote; false for a place in a further line.
func (l *Locator) seek(to int) (column int, ok bool) {
	for l.column > 0 && l.offset < to && l.body != "" {
		piece, bytes := l.node.escape(l.body)
		if piece == "" {
			return 0, false
		}
		l.column += utf8.RuneCountInString(piece)
		l.offset += bytes
		l.body = l.body[len(piece):]
	}
	return l.column, l.column > 0 && l.offset >= to
}

// locateLiteral finds a place in a "|" block.  Its lines are below its position, unchanged but for their indentation.
func (n *Node) locateLiteral(from, width int) (diag.Span, bool) {
	before := n.Value[:from]
	line := n.Position.Line + 1 + strings.Count(before, "\n")
	written := n.Source.Line(line)
	inLine := before[strings.LastIndexByte(before, '\n')+1:]
	text := firstLine(n.Value[from-len(inLine):])
	indent := len(written) - len(strings.TrimLeft(written, " "))
	if most := strings.TrimLeft(text, " "); len(most) < len(text) {
		indent -= len(text) - len(most)
	}
	if indent < 0 || !strings.HasPrefix(written[indent:], text) {
		return diag.Span{}, false
	}
	begin := n.Source.Offset(diag.Position{Line: line, Column: 1})
	return n.Source.At(n.Source.Position(begin+indent+len(inLine)), width), true
}

func firstLine(s string) string {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return s[:i]
	}
	return s
}
