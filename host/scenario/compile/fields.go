package compile

import (
	"encoding/binary"
	"fmt"
	"slices"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// fieldForm is a way in which an unsigned integer stands in bytes.
type fieldForm struct {
	name  string
	bytes int
	order binary.ByteOrder
}

// fieldForms are those that `fields` takes.
var fieldForms = []fieldForm{
	{"u8", 1, binary.BigEndian},
	{"u16", 2, binary.BigEndian}, {"u32", 4, binary.BigEndian}, {"u64", 8, binary.BigEndian},
	{"u16le", 2, binary.LittleEndian}, {"u32le", 4, binary.LittleEndian}, {"u64le", 8, binary.LittleEndian},
	{"host16", 2, binary.NativeEndian}, {"host32", 4, binary.NativeEndian}, {"host64", 8, binary.NativeEndian},
}

// FieldForms are the keys of `fields`.
func FieldForms() []ast.Key {
	keys := make([]ast.Key, len(fieldForms))
	for i, form := range fieldForms {
		order := map[binary.ByteOrder]string{
			binary.BigEndian: "in network byte order", binary.LittleEndian: "the lowest byte first",
			binary.NativeEndian: "in the byte order of this machine, which atomic operations have",
		}[form.order]
		if form.bytes == 1 {
			order = "a byte"
		}
		keys[i] = ast.Key{Name: form.name, Doc: fmt.Sprintf("%d bits, %s", 8*form.bytes, order)}
	}
	return keys
}

// fieldPairs checks a list of single-key mappings and calls each for them.
func (c *compiler) fieldPairs(node *syntax.Node, each func(form fieldForm, pair syntax.Pair)) bool {
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
		form := slices.IndexFunc(fieldForms, func(f fieldForm) bool { return f.name == pair.Key.Value })
		if form < 0 {
			known := keyNames(FieldForms())
			c.errors.Report(diag.UnknownKey, pair.Key.Span(), "no field is called %q", pair.Key.Value).
				WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, known), diag.ThereAre(known)))
			good = false
			continue
		}
		each(fieldForms[form], pair)
	}
	return good
}

func (c *compiler) dataFields(node *syntax.Node, at place) *Value {
	var forms []fieldForm
	var parts []*Value
	good := c.fieldPairs(node, func(form fieldForm, pair syntax.Pair) {
		argument := &verb.Argument{Name: pair.Key.Value, Type: verb.Unsigned}
		if form.bytes < 8 {
			argument.Type, argument.Max = verb.Integer, 1<<(8*form.bytes)-1
		}
		forms, parts = append(forms, form), append(parts, c.scalar(argument, pair.Value, at))
	})
	if !good || slices.Contains(parts, nil) {
		return nil
	}
	return c.combined(node.Span(), parts, func(values []any) (any, error) {
		var bytes []byte
		for i, value := range values {
			bytes = verb.Field{Bytes: forms[i].bytes, Order: forms[i].order}.Append(bytes, Bits(value))
		}
		return verb.DataValue{Bytes: bytes}, nil
	})
}

// layout compiles the fields that decode reads; their names are known before the run.
func (c *compiler) layout(node *syntax.Node) (*Value, verb.FieldLayout) {
	var layout verb.FieldLayout
	good := c.fieldPairs(node, func(form fieldForm, pair syntax.Pair) {
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
		layout = append(layout, verb.Field{Name: pair.Value.Value, Bytes: form.bytes, Order: form.order})
	})
	if !good {
		return nil, nil
	}
	return constant(layout, node.Span()), layout
}
