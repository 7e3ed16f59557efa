package compile

import (
	"slices"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// dataForms are the keys of data.
var dataForms = []ast.Key{
	{Name: "text", Doc: "the bytes of a text: {text: hello}"},
	{Name: "hex", Doc: "two digits a byte, spaces as you like: {hex: \"01 00 00 2a\"}"},
	{Name: "byte", Doc: "one byte: {byte: 0xee}"},
	{Name: "repeat", Doc: "one byte, several times: {repeat: 0x5a, times: 57}"},
	{Name: "times", Doc: "how many times, beside repeat"},
	{Name: "fields", Doc: "unsigned integers: {fields: [{u8: 1}, {u32: $(size)}, {host64: 3}]}; in network byte order, or as their names say"},
}

// dataKeys are their names.
var dataKeys = keyNames(dataForms)

// largestData is how many bytes a scenario can write down; buffers can be larger.
const largestData = 16 << 20

func isDataKey(name string) bool { return slices.Contains(dataKeys, name) }

// data compiles bytes: a mapping in one of the forms, or an expression.
func (c *compiler) data(name string, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind == syntax.Mapping {
		for _, pair := range node.Pairs {
			if !isDataKey(pair.Key.Value) {
				c.errors.Report(diag.UnknownKey, pair.Key.Span(), "data has no key %q", pair.Key.Value).
					WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, dataKeys), "it is written {text: ..}, {hex: ..}, {byte: ..}, {repeat: .., times: ..} or {fields: ..}"))
				return nil
			}
		}
		return c.dataForm(node.Pairs, node.Span(), at)
	}
	if node.Kind == syntax.Scalar && expression.Contains(node.Value) {
		pieces, _ := expression.Scan(node.Value)
		if len(pieces) == 1 {
			return c.dataExpression(&verb.Argument{Name: name, Type: verb.Data}, node, pieces[0], at)
		}
	}
	c.errors.Report(diag.WrongShape, node.Span(), "%s wants data, and this is a %s", name, node.Kind).
		WithHint("write {text: ..}, {hex: ..} or {fields: ..}")
	return nil
}

func (c *compiler) dataExpression(argument *verb.Argument, node *syntax.Node, piece expression.Piece, at place) *Value {
	raw, kind := c.compile(node, piece, node.Locate(piece.Offset, piece.Offset+len(piece.Text)), at)
	if raw == nil {
		return nil
	}
	if !accepts(argument, kind) {
		c.errors.Report(diag.ExpressionType, raw.Span, "%s wants bytes, and this is %s", argument.Name, kind)
		return nil
	}
	value, err := raw.then(func(v any) (any, error) {
		switch v := v.(type) {
		case []byte:
			return verb.DataValue{Bytes: v, Pattern: true}, nil
		case string:
			return verb.DataValue{Bytes: []byte(v), Pattern: true}, nil
		}
		return nil, wrongType("data", expression.Word(v), "")
	})
	if err != nil {
		c.reportValue(err, raw.Span)
		return nil
	}
	return value
}

// converted is value.then with its error reported; nil stays nil.
func (c *compiler) converted(value *Value, convert func(any) (any, error)) *Value {
	if value == nil {
		return nil
	}
	result, err := value.then(convert)
	if err != nil {
		c.reportValue(err, value.Span)
		return nil
	}
	return result
}

func hintOr(hint, other string) string {
	if hint == "" {
		return other
	}
	return hint
}
