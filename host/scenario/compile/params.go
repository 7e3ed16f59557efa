package compile

import (
	"fmt"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// ParamError is a value of -p that does not fit.
type ParamError struct {
	Name, Value string
	Message     string
	Hint        string
}

func (e *ParamError) Error() string {
	return fmt.Sprintf("parameter %s=%s: %s", e.Name, e.Value, e.Message)
}

// params binds the file's parameters.
func (x *expander) params() (bindings []Binding) {
	for _, param := range x.file.Params {
		if param.Untyped {
			x.global.names[param.Name.Value] = unbound(param)
			x.missing = append(x.missing, param.Name.Value)
			continue
		}
		argument := x.paramArgument(param)
		var value any
		hex := param.Default != nil && hexWritten(param.Default.Value)
		if param.Default != nil {
			value = x.constant("a default", x.argument(argument, param.Default, place{scope: x.global}))
		}
		word := param.Name.Value
		if text, given := x.options.Params[word]; given {
			// CheckParams has refused a value that does not fit.
			value, _ = x.parse(argument, syntax.New(nil, text))
			hex = hexWritten(text)
			x.given = append(x.given, word+"="+text)
		}
		hex = hex && value != nil && argument.Type == verb.Integer
		x.global.names[word] = name{
			kind: paramType(param, value), value: value, hex: hex, show: shown(argument), declared: param.Name,
		}
		if value == nil {
			if param.Default == nil {
				x.missing = append(x.missing, word)
			}
			continue
		}
		written := paramText(argument, value)
		if hex {
			written = ShowHex(value, verb.Integer)
		}
		bindings = append(bindings, Binding{word, written, value})
	}
	return bindings
}

// shown is how texts for readers have a parameter.
func shown(argument *verb.Argument) func(value any) string {
	return func(value any) string { return paramText(argument, value) }
}

// paramText is a value as -p would give it.
func paramText(argument *verb.Argument, value any) string {
	if n, is := value.(int); is && argument.Type == verb.Size {
		return quantity.Size(int64(n))
	}
	switch v := value.(type) {
	case []int:
		return sizesText(v)
	case float64: // a rate
		return quantity.Rate(v)
	}
	return textOf(value)
}

// paramArgument describes what values a parameter takes.
func (d *decoder) paramArgument(param *ast.Param) *verb.Argument {
	argument := &verb.Argument{
		Name: param.Name.Value, Type: paramTypes[param.Type.Value].argument, Words: texts(param.Values),
	}
	if !param.Bounded() || param.Min == nil && param.Max == nil {
		return argument
	}
	least := int64(-unbounded)
	if param.Type.Value != "int" {
		least = 0
	}
	bounds := &verb.Argument{Name: "min", Type: argument.Type}
	argument.Min, argument.Max = d.bound(bounds, param.Min, least), d.bound(bounds, param.Max, unbounded)
	return argument
}

func (d *decoder) bound(argument *verb.Argument, node *syntax.Node, otherwise int64) int64 {
	if node == nil {
		return otherwise
	}
	value := d.literal(argument, node)
	if value == nil {
		return otherwise
	}
	if n := number(value.constant); n.IsInt() && n.Num().IsInt64() {
		return n.Num().Int64()
	}
	return unbounded
}

// paramTypes are what values of parameters are, as arguments and in expressions.
var paramTypes = map[string]struct {
	argument verb.Type
	result   expression.Type
}{
	"int":      {verb.Integer, expression.Integer},
	"size":     {verb.Size, expression.Integer},
	"duration": {verb.Duration, expression.TypeOf(time.Duration(0))},
	"sizes":    {verb.Sizes, expression.TypeOf([]int{})},
	"rate":     {verb.Rate, expression.TypeOf(0.0)},
	"bool":     {verb.Boolean, expression.Boolean},
	"enum":     {verb.Word, expression.String},
	"string":   {verb.Text, expression.String},
	"role":     {verb.Text, expression.String},
	"map":      {},
}

// paramType is the type of a parameter in expressions, nil for a mapping; value is nil when it is known only in the
// run.
func paramType(param *ast.Param, value any) expression.Type {
	if param.Untyped {
		return expression.Any
	}
	if _, small := value.(int); param.Type.Value == "int" && !small {
		return expression.Unsigned // which integers with a sign may be taken for, and not the other way round
	}
	return paramTypes[param.Type.Value].result
}

// CheckParams checks the values of -p. Each name must be a parameter of some file, and each value valid in every file
// that has it.
func CheckParams(files []*ast.File, params map[string]string) []*ParamError {
	var errors []*ParamError
	known := make(map[string]bool)
	for _, file := range files {
		d := newDecoder(file, Options{}, &diag.List{})
		for _, param := range file.Params {
			name := param.Name.Value
			known[name] = true
			text, given := params[name]
			if !given || param.Untyped {
				continue
			}
			if _, bad := d.parse(d.paramArgument(param), syntax.New(nil, text)); bad != nil {
				errors = append(errors, &ParamError{name, text, bad.Message, bad.Hint})
			}
		}
	}
	for _, name := range sortedKeys(params) {
		if !known[name] {
			hint := ""
			if len(known) > 0 {
				hint = diag.OneOf(name, sortedKeys(known))
			}
			errors = append(errors, &ParamError{
				name, params[name], "no scenario here has a parameter of that name", hint,
			})
		}
	}
	return errors
}
