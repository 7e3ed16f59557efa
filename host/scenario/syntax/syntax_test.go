package syntax_test

import (
	"fmt"
	"strings"
	"testing"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

func parse(t *testing.T, text string) *syntax.Node {
	t.Helper()
	var errors diag.List
	root := syntax.Parse(diag.NewSource("t.yaml", []byte(text)), &errors)
	if root == nil || errors.Len() > 0 {
		var all strings.Builder
		errors.Render(&all, diag.Painter{})
		t.Fatalf("%q: %s", text, &all)
	}
	return root
}

func TestTree(t *testing.T) {
	root := parse(t, "a: 1\nb: [x, 'y', \"z\", null, ~, ]\nc: {d: e}\ne: &n {f: g}\nh: *n\n")
	b := root.Get("b")
	if root.Kind != syntax.Mapping || len(root.Pairs) != 5 || len(b.Items) != 5 {
		t.Fatalf("%+v", root)
	}
	if b.Items[1].Style != syntax.SingleQuoted || b.Items[2].Style != syntax.DoubleQuoted || !b.Items[3].IsNull() ||
		!b.Items[4].IsNull() || b.Items[0].IsNull() {
		t.Error("styles and nulls")
	}
	if root.Get("e") != root.Get("h") || root.Get("nothing") != nil || root.Key("e").Value != "e" {
		t.Error("aliases and look-ups")
	}
}

// TestLocate finds the text between @ and @ of the file in the value, and its place back.
func TestLocate(t *testing.T) {
	for name, file := range map[string]string{
		"plain":         "k: some @word@ here\n",
		"after unicode": "k: größe @wört@ x\n",
		"single quoted": "k: 'it''s a @word@'\n",
		"double quoted": "k: \"a\\t\\x41\\u00e9 @word@\"\n",
		"flow":          "k: {a: b, c: x@word@}\n",
		"literal":       "k: |\n  first line\n  second @word@ x\n",
		"literal first": "k: |\n  @word@\n",
	} {
		t.Run(name, func(t *testing.T) {
			start := strings.IndexByte(file, '@')
			end := strings.LastIndexByte(file, '@')
			word := file[start+1 : end]
			clean := strings.ReplaceAll(file, "@", "")
			node := parse(t, clean).Get("k")
			if c := node.Get("c"); c != nil {
				node = c
			}
			from := strings.Index(node.Value, word)
			span := node.Locate(from, from+len(word))
			source := diag.NewSource("", []byte(clean))
			if want := source.Position(start); span.Position != want || span.Width != len([]rune(word)) {
				t.Errorf("got %v width %d, want %v width %d", span.Position, span.Width, want, len([]rune(word)))
			}
		})
	}
}

func TestSpan(t *testing.T) {
	for text, want := range map[string]int{
		"k: word\n": 4, "k: 'it''s'\n": 7, "k: \"a\\\"b\"\n": 6, "k: [a]\n": 1, "k: |\n  x\n": 1, "k: größe\n": 5,
	} {
		if span := parse(t, text).Get("k").Span(); span.Width != want || span.Column != 4 {
			t.Errorf("%q: got %+v, want width %d", text, span.Position, want)
		}
	}
}

// TestHostile takes what should hurt: each ends at once, with an error.
func TestHostile(t *testing.T) {
	deep := &strings.Builder{}
	for i := range 1200 {
		fmt.Fprintf(deep, "%sa:\n", strings.Repeat(" ", i))
	}
	for name, text := range map[string]string{
		"deep flow":      strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"deeper flow":    strings.Repeat("{a: ", 300000),
		"deep block":     deep.String(),
		"too large":      strings.Repeat("# a comment\n", syntax.MaxBytes/10),
		"nulls":          "a: \x00\x00\n",
		"byte order":     "\xff\xfea\x00",
		"half a rune":    "a: \xe2\x82\n",
		"long line":      "a: {" + strings.Repeat("x, ", 100000) + "\n",
		"many anchors":   "a: [" + strings.Repeat("&x y, ", 100000) + "*z]\n",
		"only dashes":    strings.Repeat("- ", 20000) + "\n",
		"many documents": strings.Repeat("--- a\n", 10000),
	} {
		t.Run(name, func(t *testing.T) {
			var errors diag.List
			syntax.Parse(diag.NewSource("t.yaml", []byte(text)), &errors)
			if errors.Len() == 0 {
				t.Error("no error")
			}
		})
	}
}

// FuzzParse looks for panics, and for diagnostics without a place.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"a: b", "a: [b, {c: d}]", "- a\n- b", "a: |\n b\n", "a: \"\\x\"", "*x", "a: b: c", "{", "a:\n\tb", "? a",
		"a: &b [*b]", "'", "%x", "---\n...\n---",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var errors diag.List
		root := syntax.Parse(diag.NewSource("t.yaml", []byte(text)), &errors)
		if root == nil && errors.Len() == 0 {
			t.Error("neither a tree nor an error")
		}
		for _, d := range errors.Sorted() {
			if d.Span.Line < 1 || d.Span.Column < 1 {
				t.Errorf("no place: %v", d)
			}
			d.Text(diag.Painter{})
		}
		walk(root)
	})
}

func walk(n *syntax.Node) {
	if n == nil {
		return
	}
	n.Span()
	for i := range n.Value {
		n.Locate(i, len(n.Value))
	}
	for _, pair := range n.Pairs {
		walk(pair.Value)
	}
	for _, item := range n.Items {
		walk(item)
	}
}
