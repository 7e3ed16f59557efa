package plan

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// dataKeys are the keys of data.
var dataKeys = []string{"text", "hex", "byte", "repeat", "times", "fields"}

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
	raw, kind := c.compile(node, piece, at)
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

// dataForm compiles the keys of data, which may stand among the arguments of a verb.
func (c *compiler) dataForm(pairs []syntax.Pair, span diag.Span, at place) *Value {
	if len(pairs) == 0 {
		c.errors.Report(diag.MissingKey, span, "data without content").WithHint("write {text: ..}, {hex: ..}, {byte: ..} or {fields: ..}")
		return nil
	}
	get := func(name string) *syntax.Node {
		for _, pair := range pairs {
			if pair.Key.Value == name {
				return pair.Value
			}
		}
		return nil
	}
	first := pairs[0].Key
	repeated := get("repeat") != nil || get("times") != nil
	if len(pairs) > 1 && !(repeated && len(pairs) == 2 && get("repeat") != nil && get("times") != nil) {
		other := pairs[1].Key
		c.errors.Report(diag.Conflict, other.Span(), "data is written in one form, and here are %q and %q", first.Value, other.Value)
		return nil
	}
	switch {
	case repeated:
		return c.dataRepeat(get("repeat"), get("times"), first.Span(), at)
	case first.Value == "text":
		return c.dataText(pairs[0].Value, at)
	case first.Value == "hex":
		return c.dataHex(pairs[0].Value, at)
	case first.Value == "byte":
		return c.converted(c.scalar(byteArgument("byte"), pairs[0].Value, at), func(v any) (any, error) {
			return verb.DataValue{Bytes: []byte{byte(v.(int))}, Pattern: true}, nil
		})
	}
	return c.dataFields(pairs[0].Value, at)
}

func byteArgument(name string) *verb.Argument {
	return &verb.Argument{Name: name, Type: verb.Integer, Max: 255}
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

func (c *compiler) dataText(node *syntax.Node, at place) *Value {
	return c.converted(c.scalar(&verb.Argument{Name: "text", Type: verb.Text}, node, at), func(v any) (any, error) {
		return verb.DataValue{Bytes: []byte(v.(string)), Pattern: true}, nil
	})
}

func (c *compiler) dataHex(node *syntax.Node, at place) *Value {
	return c.converted(c.scalar(&verb.Argument{Name: "hex", Type: verb.Text}, node, at), func(v any) (any, error) {
		digits := strings.NewReplacer(" ", "", "\n", "", ":", "", "_", "").Replace(v.(string))
		bytes, err := hex.DecodeString(digits)
		if err != nil {
			return nil, &problem{diag.WrongType, fmt.Sprintf("%s is not hexadecimal", quoted(v.(string))), "two digits a byte, spaces as you like: \"01 00 2a\""}
		}
		return verb.DataValue{Bytes: bytes, Pattern: true}, nil
	})
}

func (c *compiler) dataRepeat(value, times *syntax.Node, span diag.Span, at place) *Value {
	if value == nil || times == nil {
		c.errors.Report(diag.MissingKey, span, "\"repeat\" (the byte) and \"times\" go together")
		return nil
	}
	b := c.scalar(byteArgument("repeat"), value, at)
	n := c.scalar(&verb.Argument{Name: "times", Type: verb.Size, Max: largestData}, times, at)
	if b == nil || n == nil {
		return nil
	}
	return c.combined(span, []*Value{b, n}, func(values []any) (any, error) {
		return verb.DataValue{Bytes: slices.Repeat([]byte{byte(values[0].(int))}, values[1].(int))}, nil
	})
}

// combined is combine with its error reported.
func (c *compiler) combined(span diag.Span, parts []*Value, build func([]any) (any, error)) *Value {
	value, err := combine(span, parts, build)
	if err != nil {
		c.reportValue(err, span)
		return nil
	}
	return value
}

// fieldWidths are the integers of `fields`.
var fieldWidths = map[string]int{"u8": 1, "u16": 2, "u32": 4, "u64": 8}

// fieldPairs checks a list of single-key mappings and calls each for them.
func (c *compiler) fieldPairs(node *syntax.Node, each func(width int, pair syntax.Pair)) bool {
	if node.Kind != syntax.Sequence || len(node.Items) == 0 {
		c.errors.Report(diag.WrongShape, node.Span(), "fields is a list: [{u32: ..}, {u16: ..}]")
		return false
	}
	good := true
	for _, item := range node.Items {
		if item.Kind != syntax.Mapping || len(item.Pairs) != 1 {
			c.errors.Report(diag.WrongShape, item.Span(), "a field is one key: {u32: ..}")
			good = false
			continue
		}
		pair := item.Pairs[0]
		width, known := fieldWidths[pair.Key.Value]
		if !known {
			c.errors.Report(diag.UnknownKey, pair.Key.Span(), "no field is called %q", pair.Key.Value).WithHint("there are: u8, u16, u32, u64")
			good = false
			continue
		}
		each(width, pair)
	}
	return good
}

func (c *compiler) dataFields(node *syntax.Node, at place) *Value {
	var widths []int
	var parts []*Value
	good := c.fieldPairs(node, func(width int, pair syntax.Pair) {
		argument := &verb.Argument{Name: pair.Key.Value, Type: verb.Integer}
		if width < 8 {
			argument.Max = 1<<(8*width) - 1 // all 64 bits need no bound
		}
		widths, parts = append(widths, width), append(parts, c.scalar(argument, pair.Value, at))
	})
	if !good || slices.Contains(parts, nil) {
		return nil
	}
	return c.combined(node.Span(), parts, func(values []any) (any, error) {
		var bytes []byte
		for i, value := range values {
			for shift := 8 * (widths[i] - 1); shift >= 0; shift -= 8 {
				bytes = append(bytes, byte(value.(int)>>shift))
			}
		}
		return verb.DataValue{Bytes: bytes}, nil
	})
}

// layout compiles the fields that decode reads; their names are known before the run.
func (c *compiler) layout(node *syntax.Node) (*Value, verb.FieldLayout) {
	var layout verb.FieldLayout
	good := c.fieldPairs(node, func(width int, pair syntax.Pair) {
		if pair.Value.Kind != syntax.Scalar || !isName(pair.Value.Value) {
			c.errors.Report(diag.BadName, pair.Value.Span(), "%q cannot be the name of a field", pair.Value.Value)
			return
		}
		for _, earlier := range layout {
			if earlier.Name == pair.Value.Value {
				c.errors.Report(diag.NameTaken, pair.Value.Span(), "there is a field %q already", pair.Value.Value)
				return
			}
		}
		layout = append(layout, verb.Field{Name: pair.Value.Value, Bytes: width})
	})
	if !good {
		return nil, nil
	}
	return constant(layout, node.Span()), layout
}

func hintOr(hint, other string) string {
	if hint == "" {
		return other
	}
	return hint
}
