package syntax

import (
	"bytes"
	"errors"
	"io"
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

// IsScenario tells whether a text has the key that scenarios begin with, in a line of its own.
func IsScenario(text []byte) bool {
	text = bytes.TrimPrefix(text, []byte("\ufeff")) // some editors begin a file so
	return bytes.HasPrefix(text, []byte("rdmarun:")) || bytes.Contains(text, []byte("\nrdmarun:"))
}

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
	if len(text) > MaxBytes {
		errors.Report(diag.TooLarge, source.Start(), "the file has more than %d MiB", MaxBytes>>20).
			WithHint("a scenario is a page or two; large data belongs into a file of its own")
		return false
	}
	if strings.HasPrefix(text, "\xff\xfe") || strings.HasPrefix(text, "\xfe\xff") {
		errors.Report(diag.NotText, source.Start(), "the file is UTF-16, and scenarios are UTF-8").
			WithHint("iconv -f UTF-16 -t UTF-8 %s", source.Name)
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
