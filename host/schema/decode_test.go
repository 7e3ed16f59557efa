package schema

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// decode reads a YAML file as an editor's language server does; files that are no YAML are not readable.
func decode(path string) (value any, readable bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	return decodeText(path, text)
}

func decodeText(path string, text []byte) (value any, readable bool) {
	errors := &diag.List{}
	root := syntax.Parse(diag.NewSource(path, text), errors)
	if root == nil || errors.Len() > 0 {
		return nil, false
	}
	return convert(root), true
}

func convert(node *syntax.Node) any {
	switch node.Kind {
	case syntax.Mapping:
		object := make(map[string]any)
		for _, pair := range node.Pairs {
			object[pair.Key.Value] = convert(pair.Value)
		}
		return object
	case syntax.Sequence:
		list := make([]any, len(node.Items))
		for i, item := range node.Items {
			list[i] = convert(item)
		}
		return list
	}
	return scalarValue(node)
}

// scalarValue is the core schema of YAML 1.2.
func scalarValue(node *syntax.Node) any {
	text := node.Value
	switch {
	case node.IsNull():
		return nil
	case node.Style != syntax.Plain:
		return text
	case text == "true" || text == "false":
		return text == "true"
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil && !strings.Contains(text, "_") {
		return json.Number(strconv.FormatUint(n, 10))
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return json.Number(text)
	}
	return text
}
