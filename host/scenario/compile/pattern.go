package compile

import (
	"regexp"
	"strconv"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// pattern compiles {re: ..}, a regular expression of Go's syntax.
func (c *compiler) pattern(condition Condition, argument *verb.Argument, node *syntax.Node, at place) (Condition, bool) {
	if argument.Type != verb.Text && argument.Type != verb.Word && argument.Type != verb.Data {
		return c.wrongOperator(condition, argument, "text and data")
	}
	text := c.scalar(&verb.Argument{Name: "re", Type: verb.Text}, node, at)
	operand := c.converted(text, func(v any) (any, error) {
		compiled, err := regexp.Compile(v.(string))
		if err != nil {
			return nil, &problem{diag.WrongType, "not a regular expression: " + strings.TrimPrefix(err.Error(), "error parsing regexp: "), "the syntax is that of RE2"}
		}
		return compiled, nil
	})
	condition.Operands = []*Value{operand}
	return condition, operand != nil
}

// approx compiles {approx: x, tol: 5%}; the tolerance is a part of x, or an amount.
func (c *compiler) approx(condition Condition, argument *verb.Argument, pair syntax.Pair, whole *syntax.Node, at place) (Condition, bool) {
	if _, ok := c.ordered(argument, pair, nil); !ok {
		return condition, false
	}
	around := c.operand(argument, pair.Value, at)
	tolerance := whole.Get("tol")
	if tolerance == nil {
		c.errors.Report(diag.MissingKey, pair.Key.Span(), "approx needs a tolerance").WithHint("{approx: .., tol: 5%%}")
		return condition, false
	}
	width := c.tolerance(argument, tolerance, at)
	condition.Operands = []*Value{around, width}
	return condition, around != nil && width != nil
}

// percent is a tolerance relative to the value.
type percent float64

func (c *compiler) tolerance(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if number, isPercent := strings.CutSuffix(node.Value, "%"); isPercent && node.Kind == syntax.Scalar {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || p < 0 {
			c.errors.Report(diag.WrongType, node.Span(), "%s is no tolerance", quoted(node.Value)).WithHint("write 5%%, or an amount")
			return nil
		}
		return constant(percent(p), node.Span())
	}
	return c.operand(argument, node, at)
}
