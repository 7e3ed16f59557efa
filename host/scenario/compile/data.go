package compile

import (
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
	{Name: "times", Doc: "how many times, beside repeat"},
	{Name: "fields", Doc: "unsigned integers: {fields: [{u8: 1}, {u32: $(size)}, {host64: 3}]}; in network byte order, or as their names say"},
}

// dataKeys are their names.
var dataKeys = keyNames(dataForms)

// largestData is how many bytes a scenario can write down; buffers can be larger.
const largestData = 16 << 20

func isDataKey(name string) bool { return slices.Contains(dataKeys, name) }

// data compiles bytes: a mapping in one of the forms, or an expression.
func (d *decoder) data(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind == syntax.Mapping {
		for _, pair := range node.Pairs {
			if !isDataKey(pair.Key.Value) {
				d.errors.Report(diag.UnknownKey, pair.Key.Span(), "data has no key %q", pair.Key.Value).
					WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, dataKeys), "it is written {text: ..}, {hex: ..}, {byte: ..}, {repeat: .., times: ..} or {fields: ..}"))
				return nil
			}
		}
		return d.dataForm(node.Pairs, node.Span(), at)
	}
	if node.Kind == syntax.Scalar && expression.Contains(node.Value) {
		pieces, _ := expression.Scan(node.Value)
		if len(pieces) == 1 {
			return d.dataExpression(argument, node, pieces[0], at)
		}
	}
	d.errors.Report(diag.WrongShape, node.Span(), "%s wants data, and this is a %s", argument.Name, node.Kind).
		WithHint("write {text: ..}, {hex: ..} or {fields: ..}")
	return nil
}

func (d *decoder) dataExpression(argument *verb.Argument, node *syntax.Node, piece expression.Piece, at place) *Value {
	raw, kind := d.compile(node, piece, node.Locate(piece.Offset, piece.Offset+len(piece.Text)), at)
	if raw == nil {
		return nil
	}
	if !d.types.accepts(argument.Type, kind) {
		d.errors.Report(diag.ExpressionType, raw.Span, "%s wants bytes, and this is %s", argument.Name, kind)
		return nil
	}
	return d.converted(raw, func(v any) (any, error) {
		switch v := v.(type) {
		case []byte:
			return verb.DataValue{Bytes: v, Pattern: true}, nil
		case string:
			return verb.DataValue{Bytes: []byte(v), Pattern: true}, nil
		}
		return nil, wrongType("data", expression.Word(v), "")
	})
}

// converted is value.then with its error reported; nil stays nil.
func (d *decoder) converted(value *Value, convert func(any) (any, error)) *Value {
	if value == nil {
		return nil
	}
	result, err := value.then(convert)
	if err != nil {
		d.reportValue(err, value.Span)
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

// dataForm compiles the keys of data, which may stand among the arguments of a verb.
func (d *decoder) dataForm(pairs []syntax.Pair, span diag.Span, at place) *Value {
	if len(pairs) == 0 {
		d.errors.Report(diag.MissingKey, span, "data without content").WithHint("write {text: ..}, {hex: ..}, {byte: ..} or {fields: ..}")
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
		d.errors.Report(diag.Conflict, other.Span(), "data is written in one form, and here are %q and %q", first.Value, other.Value)
		return nil
	}
	switch {
	case repeated:
		return d.dataRepeat(get("repeat"), get("times"), first.Span(), at)
	case first.Value == "text":
		return d.dataText(pairs[0].Value, at)
	case first.Value == "hex":
		return d.dataHex(pairs[0].Value, at)
	case first.Value == "byte":
		return d.converted(d.scalar(byteArgument("byte"), pairs[0].Value, at), func(v any) (any, error) {
			return verb.DataValue{Bytes: []byte{byte(v.(int))}, Pattern: true, Every: true}, nil
		})
	}
	return d.dataFields(pairs[0].Value, at)
}

func byteArgument(name string) *verb.Argument {
	return &verb.Argument{Name: name, Type: verb.Integer, Max: 255}
}

func (d *decoder) dataText(node *syntax.Node, at place) *Value {
	return d.converted(d.scalar(&verb.Argument{Name: "text", Type: verb.Text}, node, at), func(v any) (any, error) {
		return verb.DataValue{Bytes: []byte(v.(string)), Pattern: true}, nil
	})
}

func (d *decoder) dataHex(node *syntax.Node, at place) *Value {
	return d.converted(d.scalar(&verb.Argument{Name: "hex", Type: verb.Text}, node, at), func(v any) (any, error) {
		digits := strings.NewReplacer(" ", "", "\n", "", ":", "", "_", "").Replace(v.(string))
		bytes, err := hex.DecodeString(digits)
		if err != nil {
			return nil, &problem{diag.WrongType, fmt.Sprintf("%s is not hexadecimal", quoted(v.(string))), "two digits a byte, spaces as you like: \"01 00 2a\""}
		}
		return verb.DataValue{Bytes: bytes, Pattern: true}, nil
	})
}

func (d *decoder) dataRepeat(value, times *syntax.Node, span diag.Span, at place) *Value {
	if value == nil || times == nil {
		d.errors.Report(diag.MissingKey, span, "\"repeat\" (the byte) and \"times\" go together")
		return nil
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

// combined is combine with its error reported.
func (d *decoder) combined(span diag.Span, parts []*Value, build func([]any) (any, error)) *Value {
	value, err := combine(span, parts, build)
	if err != nil {
		d.reportValue(err, span)
		return nil
	}
	return value
}

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
		form := slices.IndexFunc(fieldForms, func(f fieldForm) bool { return f.name == pair.Key.Value })
		if form < 0 {
			known := keyNames(FieldForms())
			d.errors.Report(diag.UnknownKey, pair.Key.Span(), "no field is called %q", pair.Key.Value).
				WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, known), diag.ThereAre(known)))
			good = false
			continue
		}
		each(fieldForms[form], pair)
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
			bytes = verb.Field{Bytes: forms[i].bytes, Order: forms[i].order}.Append(bytes, Bits(value))
		}
		return verb.DataValue{Bytes: bytes}, nil
	})
}

// layout compiles the fields that decode reads; their names are known before the run.
func (d *decoder) layout(node *syntax.Node) (*Value, verb.FieldLayout) {
	var layout verb.FieldLayout
	good := d.fieldPairs(node, func(form fieldForm, pair syntax.Pair) {
		if pair.Value.Kind != syntax.Scalar || !isName(pair.Value.Value) {
			d.errors.Report(diag.BadName, pair.Value.Span(), "%q cannot be the name of a field", pair.Value.Value)
			return
		}
		for _, earlier := range layout {
			if earlier.Name == pair.Value.Value {
				d.errors.Report(diag.NameTaken, pair.Value.Span(), "there is a field %q already", pair.Value.Value)
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
