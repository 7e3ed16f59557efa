package compile

import (
	"fmt"
	"math"
	"time"

	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

func (r *argumentReader) argument(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if argument.Type.NamesObject() {
		return r.objectName(argument, node, at)
	}
	switch argument.Type {
	case verb.Buffer:
		return r.bufferName(argument, node, at)
	case verb.Content:
		return r.content(argument, node, at)
	case verb.Data:
		return r.data(argument.Name, node, at)
	case verb.Endpoint:
		return r.endpoint(argument, node, at)
	case verb.Peer:
		return r.peer(argument, node, at)
	case verb.Remote:
		return r.remote(argument, node, at)
	case verb.QueuePair:
		return r.queuePair(r.defaultQueuePair, node, at)
	case verb.Role:
		return r.roleName(argument, node, at)
	case verb.FaultName:
		return r.faultName(argument, node, at)
	case verb.Roles:
		return r.roleList(argument, node, at)
	case verb.Rights, verb.PeerRights:
		return r.rights(argument, node)
	case verb.Fields:
		return r.fields(argument, node, at)
	case verb.Words:
		return r.wordList(argument, node, at)
	case verb.Condition:
		return r.conditionArgument(argument, node, at)
	case verb.Sizes:
		return r.sizes(argument, node, at)
	case verb.Counters:
		return r.counters(argument, node, at)
	case verb.Options:
		return r.optionMapping(argument, node, at)
	case verb.OptionList:
		return r.optionList(argument, node, at)
	case verb.Layout:
		value, layout := r.compiler.layout(node)
		r.layout = layout
		return value
	}
	return r.scalar(argument, node, at)
}

// fromExpression fits the result of an expression to the type of an argument.
func fromExpression(argument *verb.Argument, value any) (any, *problem) {
	switch argument.Type {
	case verb.Integer, verb.Unsigned, verb.Size, verb.Status:
		n, ok := whole(value)
		if text, isText := value.(string); isText && argument.Type == verb.Status {
			return parseStatusOr(text)
		}
		if fraction, isFloat := value.(float64); isFloat && !ok {
			return nil, wrongType(argument.Type.String(), fmt.Sprint(fraction), "int(..) cuts the fraction off")
		}
		if !ok {
			return nil, wrongType(argument.Type.String(), expression.Word(value), "")
		}
		if _, wide := n.(uint64); wide && argument.Type != verb.Integer && argument.Type != verb.Unsigned {
			return nil, beyondInteger(fmt.Sprint(n))
		}
		if argument.Type == verb.Unsigned {
			n = Bits(n)
		}
		return n, check(argument, n)
	case verb.Duration:
		d, ok := value.(time.Duration)
		if text, isText := value.(string); isText {
			parsed, bad := parseDuration(text)
			if bad != nil {
				return nil, bad
			}
			d, ok = parsed, true
		}
		if !ok {
			return nil, wrongType("a duration", expression.Word(value), "250ms is one, and so is a parameter of type duration")
		}
		return d, check(argument, d)
	case verb.Boolean:
		if b, ok := value.(bool); ok {
			return b, nil
		}
		return nil, wrongType("true or false", expression.Word(value), "")
	case verb.Text:
		return textOf(value), nil
	case verb.Any:
		return value, nil
	case verb.Fraction:
		f, ok := expression.Number(value)
		if !ok {
			return nil, wrongType(argument.Type.String(), expression.Word(value), "")
		}
		return f, check(argument, f)
	case verb.Rate:
		if rate, is := expression.Number(value); is {
			return rate, nil
		}
		if text, is := value.(string); is {
			return parseRate(text)
		}
		return nil, wrongType(argument.Type.String(), expression.Word(value), "")
	case verb.Sizes:
		return sizesOf(argument, value)
	default:
		text, ok := value.(string)
		if !ok {
			return nil, wrongType(argument.Type.String(), expression.Word(value), "")
		}
		return text, check(argument, text)
	}
}

// whole is an integer, as an int where that is large enough; a fraction without one is one, too, since 10 / 2 is a
// fraction to the expression language.
func whole(value any) (any, bool) {
	switch v := value.(type) {
	case int:
		return v, true
	case uint64:
		if v <= math.MaxInt64 {
			return int(v), true
		}
		return v, true
	case float64:
		if v == float64(int(v)) {
			return int(v), true
		}
	}
	return nil, false
}

// accepts tells whether an expression whose result is of that kind (expression.Program.Returns) can fit;
// the empty kind is only known while running.
func accepts(argument *verb.Argument, kind string) bool {
	if kind == "" {
		return true
	}
	switch argument.Type {
	case verb.Integer, verb.Unsigned, verb.Size:
		return kind == "an integer" || kind == "a fraction"
	case verb.Status:
		return kind == "an integer" || kind == "a string"
	case verb.Duration:
		return kind == "a duration" || kind == "a string"
	case verb.Boolean:
		return kind == "a boolean"
	case verb.Text, verb.Any:
		return true
	case verb.Fraction:
		return kind == "an integer" || kind == "a fraction"
	case verb.Rate:
		return kind == "an integer" || kind == "a fraction" || kind == "a string"
	case verb.Sizes:
		return kind == "an integer" || kind == "a list" || kind == "a string"
	case verb.Remote:
		return kind == "a record"
	case verb.Data, verb.Content:
		return kind == "bytes" || kind == "a string"
	}
	return kind == "a string"
}

// TookOfResult is the member of each result that tells how long its step took.
const TookOfResult = "took"

// resultType is the type of a result in expressions.
func resultType(v *verb.Verb, layout verb.FieldLayout) expression.Type {
	object := expression.Object{TookOfResult: expression.TypeOf(time.Duration(0))}
	for _, result := range v.Results {
		object[result.Name] = fieldType(result.Type)
	}
	for _, field := range layout {
		object[field.Name] = expression.Integer
		if field.Bytes == 8 {
			object[field.Name] = expression.Unsigned
		}
	}
	return object
}

func fieldType(t verb.Type) expression.Type {
	switch t {
	case verb.Integer, verb.Status:
		return expression.Integer
	case verb.Unsigned, verb.Size:
		return expression.Unsigned
	case verb.Boolean:
		return expression.Boolean
	case verb.Duration:
		return expression.TypeOf(time.Duration(0))
	case verb.Data:
		return expression.TypeOf([]byte(nil))
	}
	return expression.String
}
