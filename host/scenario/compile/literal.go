package compile

import (
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// literal reads a scalar without expressions as the type of an argument.
func literal(argument *verb.Argument, node *syntax.Node) (any, *problem) {
	text := node.Value
	if node.Style != syntax.Plain && (argument.Type == verb.Integer || argument.Type == verb.Unsigned || argument.Type == verb.Boolean) {
		return nil, wrongType(argument.Type.String(), quoted(text)+" in quotes is a string and", "leave the quotes away")
	}
	var value any
	var bad *problem
	switch argument.Type {
	case verb.Integer:
		value, bad = parseNumber(text)
	case verb.Unsigned:
		if value, bad = parseNumber(text); bad == nil {
			value = Bits(value)
		}
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
