package compile

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

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
			return verb.DataValue{Bytes: []byte{byte(v.(int))}, Pattern: true, Every: true}, nil
		})
	}
	return c.dataFields(pairs[0].Value, at)
}

func byteArgument(name string) *verb.Argument {
	return &verb.Argument{Name: name, Type: verb.Integer, Max: 255}
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
