package compile

import (
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// wordList compiles a list of words, each once; it may be empty.
func (c *compiler) wordList(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Sequence {
		example := argument.Words[:min(2, len(argument.Words))]
		if slices.Contains(argument.Words, node.Value) {
			example = []string{node.Value}
		}
		c.errors.Report(diag.WrongShape, node.Span(), "%s is a list of words", argument.Name).WithHint("[%s]", strings.Join(example, ", "))
		return nil
	}
	word := &verb.Argument{Name: argument.Name, Type: verb.Word, Words: argument.Words}
	parts := make([]*Value, len(node.Items))
	for i, item := range node.Items {
		if parts[i] = c.scalar(word, item, at); parts[i] == nil {
			return nil
		}
	}
	return c.combined(node.Span(), parts, func(values []any) (any, error) {
		words := make([]string, len(values))
		for i, value := range values {
			words[i] = value.(string)
			if slices.Contains(words[:i], words[i]) {
				return nil, &problem{diag.Conflict, argument.Name + " has " + quoted(words[i]) + " twice", ""}
			}
		}
		return words, nil
	})
}
