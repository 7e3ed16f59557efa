package compile

import (
	"fmt"
	"math"
	"time"

	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/verb"
)

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
