package compile

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

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
	{Name: "times", Doc: "how many times, with repeat"},
	{
		Name: "fields",
		Doc: "unsigned integers: {fields: [{u8: 1}, {u32: $(size)}, {host64: 3}]}; in network byte order, or as " +
			"their names say",
	},
}

// dataKeys are their names.
var dataKeys = ast.Names(dataForms)

// largestData is how many bytes a scenario can write down; buffers can be larger.
const largestData = 16 << 20

func isDataKey(name string) bool { return slices.Contains(dataKeys, name) }

// data compiles bytes: a mapping in one of the forms, or an expression.
func (d *decoder) data(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind == syntax.Mapping {
		for _, pair := range node.Pairs {
			if !isDataKey(pair.Key.Value) {
				return d.refuse(diag.UnknownKey, pair.Key.Span(),
					cmp.Or(
						diag.DidYouMean(pair.Key.Value, dataKeys),
						"it is written {text: ..}, {hex: ..}, {byte: ..}, {repeat: .., times: ..} or {fields: ..}",
					),
					"data has no key %q", pair.Key.Value)
			}
		}
		return d.dataForm(node.Pairs, node.Span(), at)
	}
	if piece, one := onlyExpression(node); one {
		return d.expression(argument, node, piece, at)
	}
	return d.refuse(
		diag.WrongShape, node.Span(), "write {text: ..}, {hex: ..} or {fields: ..}", "%s wants data, and this is a %s",
		argument.Name, node.Kind,
	)
}

// convertData is the result of an expression as data.
func convertData(_ *verb.Argument, value any) (any, *problem) {
	switch v := value.(type) {
	case []byte:
		return verb.DataValue{Bytes: v, Pattern: true}, nil
	case string:
		return verb.DataValue{Bytes: []byte(v), Pattern: true}, nil
	}
	return nil, wrongType("data", expression.Word(value), "")
}

// dataForm compiles the keys of data, which may be among the arguments of a verb.
func (d *decoder) dataForm(pairs []syntax.Pair, span diag.Span, at place) *Value {
	if len(pairs) == 0 {
		return d.refuse(
			diag.MissingKey, span, "write {text: ..}, {hex: ..}, {byte: ..} or {fields: ..}", "data without content",
		)
	}
	given := &syntax.Node{Pairs: pairs}
	first, value, repeat, times := pairs[0].Key, pairs[0].Value, given.Get("repeat"), given.Get("times")
	if len(pairs) > 2 || len(pairs) == 2 && (repeat == nil || times == nil) {
		return d.refuse(
			diag.Conflict, pairs[1].Key.Span(), "", "data is written in one form, and here are %q and %q", first.Value,
			pairs[1].Key.Value,
		)
	}
	switch first.Value {
	case "repeat", "times":
		return d.dataRepeat(repeat, times, first.Span(), at)
	case "fields":
		return d.dataFields(value, at)
	case "byte":
		return d.converted(d.scalar(byteArgument("byte"), value, at), func(v any) (any, error) {
			return verb.DataValue{Bytes: []byte{byte(v.(int))}, Pattern: true, Every: true}, nil
		})
	}
	return d.converted(d.text(first.Value, value, at), func(v any) (any, error) {
		if first.Value == "hex" {
			return fromHex(v.(string))
		}
		return verb.DataValue{Bytes: []byte(v.(string)), Pattern: true}, nil
	})
}

func byteArgument(name string) *verb.Argument {
	return &verb.Argument{Name: name, Type: verb.Integer, Max: 255}
}

func fromHex(text string) (any, error) {
	digits := strings.NewReplacer(" ", "", "\n", "", ":", "", "_", "").Replace(text)
	bytes, err := hex.DecodeString(digits)
	if err != nil {
		return nil, diag.Wrong(
			diag.WrongType, quoted(text)+" is not hexadecimal", "two digits a byte, spaces as you like: \"01 00 2a\"",
		)
	}
	return verb.DataValue{Bytes: bytes, Pattern: true}, nil
}

func (d *decoder) dataRepeat(value, times *syntax.Node, span diag.Span, at place) *Value {
	if value == nil || times == nil {
		return d.refuse(diag.MissingKey, span, "", "\"repeat\" (the byte) and \"times\" go together")
	}
	b := d.scalar(byteArgument("repeat"), value, at)
	n := d.scalar(&verb.Argument{Name: "times", Type: verb.Size, Max: largestData}, times, at)
	if b == nil || n == nil {
		return nil
	}
	return d.combined(span, []*Value{b, n}, func(values []any) (any, error) {
		return verb.DataValue{Bytes: slices.Repeat([]byte{byte(values[0].(int))}, values[1].(int))}, nil
	})
}

// fieldForm is an encoding of an unsigned integer in bytes.
type fieldForm struct {
	name  string
	bytes int
	order binary.ByteOrder
}

func (f *fieldForm) key() string { return f.name }

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
func (d *decoder) fieldPairs(node *syntax.Node, each func(form fieldForm, pair syntax.Pair)) bool {
	if node.Kind != syntax.Sequence || len(node.Items) == 0 {
		d.errors.Report(diag.WrongShape, node.Span(), "fields is a list: [{u32: ..}, {u16: ..}]")
		return false
	}
	good := true
	for _, item := range node.Items {
		if item.Kind != syntax.Mapping || len(item.Pairs) != 1 {
			d.errors.Report(diag.WrongShape, item.Span(), "a field is one key: {u32: ..}")
			good = false
			continue
		}
		pair := item.Pairs[0]
		form := row(fieldForms, pair.Key.Value, (*fieldForm).key)
		if form == nil {
			d.errors.Report(diag.UnknownKey, pair.Key.Span(), "no field is called %q", pair.Key.Value).WithOneOf(
				pair.Key.Value, namesOf(fieldForms, (*fieldForm).key),
			)
			good = false
			continue
		}
		each(*form, pair)
	}
	return good
}

func (d *decoder) dataFields(node *syntax.Node, at place) *Value {
	var forms []fieldForm
	var parts []*Value
	good := d.fieldPairs(node, func(form fieldForm, pair syntax.Pair) {
		argument := &verb.Argument{Name: pair.Key.Value, Type: verb.Unsigned}
		if form.bytes < 8 {
			argument.Type, argument.Max = verb.Integer, 1<<(8*form.bytes)-1
		}
		forms, parts = append(forms, form), append(parts, d.scalar(argument, pair.Value, at))
	})
	if !good || slices.Contains(parts, nil) {
		return nil
	}
	return d.combined(node.Span(), parts, func(values []any) (any, error) {
		var bytes []byte
		for i, value := range values {
			bytes = verb.Field{Bytes: forms[i].bytes, Order: forms[i].order}.Append(bytes, expression.Bits(value))
		}
		return verb.DataValue{Bytes: bytes}, nil
	})
}

// layout compiles the fields that decode reads; their names are known before the run.
func (d *decoder) layout(_ *verb.Argument, node *syntax.Node, _ place) *Value {
	var layout verb.FieldLayout
	good := d.fieldPairs(node, func(form fieldForm, pair syntax.Pair) {
		name := pair.Value.Value
		switch {
		case pair.Value.Kind != syntax.Scalar || !ast.IsName(name):
			d.errors.Report(diag.BadName, pair.Value.Span(), "%q cannot be the name of a field", name)
		case slices.ContainsFunc(layout, func(f verb.Field) bool { return f.Name == name }):
			d.errors.Report(diag.NameTaken, pair.Value.Span(), "there is a field %q already", name)
		default:
			layout = append(layout, verb.Field{Name: name, Bytes: form.bytes, Order: form.order})
		}
	})
	if !good {
		return nil
	}
	return constant(layout, node.Span())
}
