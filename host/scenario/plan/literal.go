package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// literal reads a scalar without expressions as the type of an argument.
func literal(argument *verb.Argument, node *syntax.Node) (any, *problem) {
	text := node.Value
	if node.Style != syntax.Plain && (argument.Type == verb.Integer || argument.Type == verb.Boolean) {
		return nil, wrongType(argument.Type.String(), quoted(text)+" in quotes is a string and", "leave the quotes away")
	}
	var value any
	var bad *problem
	switch argument.Type {
	case verb.Integer:
		value, bad = parseInteger(text)
	case verb.Size:
		value, bad = parseSize(text)
	case verb.Duration:
		value, bad = parseDuration(text)
	case verb.Boolean:
		value, bad = parseBoolean(text)
	case verb.Status:
		value, bad = parseStatus(text)
	case verb.Fraction:
		value, bad = parseFraction(text)
	case verb.Rate:
		value, bad = parseRate(text)
	case verb.Sizes:
		value, bad = parseSizes(text)
	case verb.Any:
		value = inferred(node)
	default:
		value = text
	}
	if bad != nil {
		return nil, bad
	}
	return value, check(argument, value)
}

// fromExpression fits the result of an expression to the type of an argument.
func fromExpression(argument *verb.Argument, value any) (any, *problem) {
	switch argument.Type {
	case verb.Integer, verb.Size, verb.Status:
		n, ok := value.(int)
		if !ok {
			if whole, isFloat := value.(float64); isFloat && whole == float64(int(whole)) {
				n, ok = int(whole), true // 10 / 2 is a fraction to the expression language
			}
		}
		if text, isText := value.(string); isText && argument.Type == verb.Status {
			return parseStatusOr(text)
		}
		if fraction, isFloat := value.(float64); isFloat && !ok {
			return nil, wrongType(argument.Type.String(), fmt.Sprint(fraction), "int(..) cuts the fraction off")
		}
		if !ok {
			return nil, wrongType(argument.Type.String(), expression.Word(value), "")
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
			return nil, wrongType("a duration", expression.Word(value), "duration(\"250ms\") makes one, and a parameter of type duration is one")
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
		if n, ok := value.(int); ok {
			value = float64(n)
		}
		f, ok := value.(float64)
		if !ok {
			return nil, wrongType(argument.Type.String(), expression.Word(value), "")
		}
		return f, check(argument, f)
	case verb.Rate:
		switch v := value.(type) {
		case int:
			return float64(v), nil
		case float64:
			return v, nil
		case string:
			rate, bad := parseRate(v)
			return rate, bad
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

// accepts tells whether an expression whose result is of that kind (expression.Program.Returns) can fit;
// the empty kind is only known while running.
func accepts(argument *verb.Argument, kind string) bool {
	if kind == "" {
		return true
	}
	switch argument.Type {
	case verb.Integer, verb.Size:
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

// check applies the argument's bounds and words.
func check(argument *verb.Argument, value any) *problem {
	switch v := value.(type) {
	case int:
		if bad := outside(argument, int64(v)); bad && argument.Type == verb.Size {
			return outOfRange(argument, sizeText(int64(v)), sizeText)
		} else if bad {
			return outOfRange(argument, fmt.Sprint(v), func(n int64) string { return fmt.Sprint(n) })
		}
	case time.Duration:
		if outside(argument, int64(v)) {
			return outOfRange(argument, v.String(), func(n int64) string { return time.Duration(n).String() })
		}
	case float64:
		if argument.Type == verb.Fraction && (v < 0 || v > 1) {
			return &problem{diag.OutOfRange, fmt.Sprint(v) + " is out of range: 0 to 1", ""}
		}
	case []int:
		return checkSizes(argument, v)
	case string:
		return checkWord(argument, v)
	}
	return nil
}

// unbounded stands for "no bound" on one side.
const unbounded = 1 << 62

func outOfRange(argument *verb.Argument, value string, show func(int64) string) *problem {
	bounds := show(argument.Min) + " to " + show(argument.Max)
	switch {
	case argument.Max >= unbounded:
		bounds = "at least " + show(argument.Min)
	case argument.Min <= -unbounded:
		bounds = "at most " + show(argument.Max)
	}
	return &problem{diag.OutOfRange, value + " is out of range: " + bounds, ""}
}

func outside(argument *verb.Argument, n int64) bool {
	if argument.Min == 0 && argument.Max == 0 {
		return argument.Type == verb.Size && n < 0
	}
	return n < argument.Min || n > argument.Max
}

// sizeText writes bytes with the largest unit that fits exactly.
func sizeText(n int64) string {
	for _, unit := range []struct {
		name  string
		bytes int64
	}{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return fmt.Sprintf("%d%s", n/unit.bytes, unit.name)
		}
	}
	return fmt.Sprint(n)
}

func checkWord(argument *verb.Argument, word string) *problem {
	switch argument.Type {
	case verb.Word:
		if len(argument.Words) == 0 {
			return nil // an enum without values, which is an error of its own
		}
		for _, known := range argument.Words {
			if known == word {
				return nil
			}
		}
		hint := diag.DidYouMean(word, argument.Words)
		if hint == "" {
			hint = "there are: " + strings.Join(argument.Words, ", ")
		}
		return &problem{diag.NotOneOf, fmt.Sprintf("%s cannot be %s", argument.Name, quoted(word)), hint}
	case verb.Address:
		if _, err := netip.ParseAddr(word); err != nil && word != "any" {
			return wrongType("an IP address", quoted(word), "write an address of this machine, or any")
		}
	}
	return nil
}

// parseStatus reads the status of a CM event: a number, an errno (which events carry negative), or a
// reject reason.
func parseStatus(text string) (int, *problem) {
	if n, bad := parseInteger(text); bad == nil {
		return n, nil
	}
	if errno, ok := verb.ParseErrno(text); ok {
		return -int(errno), nil
	}
	if reason, ok := verb.ParseRejectReason(text); ok {
		return reason, nil
	}
	names := append(verb.ErrnoNames(), verb.RejectReasons()...)
	return 0, &problem{diag.NotOneOf, quoted(text) + " is no status of an event", diag.DidYouMean(text, names)}
}

func parseStatusOr(text string) (any, *problem) {
	n, bad := parseStatus(text)
	if bad != nil {
		return nil, bad
	}
	return n, nil
}

// noErrno is the errno 0 of a call that must succeed, in `expect: {errno: 0}`.
const noErrno = "0"

// errnoArgument describes what `expect: {errno: ..}` takes.
func errnoArgument() *verb.Argument {
	return &verb.Argument{Name: "errno", Type: verb.Word, Words: append(verb.ErrnoNames(), noErrno)}
}
