package plan

import (
	"slices"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

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
