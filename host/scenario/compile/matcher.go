package compile

import (
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// matchers are the keys of a matcher, but for tol, which belongs to approx.
var matchers = []ast.Key{
	{Name: "eq", Doc: "equal; a value without a matcher means the same"},
	{Name: "ne", Doc: "anything but this"},
	{Name: "le", Doc: "at most"},
	{Name: "lt", Doc: "less than"},
	{Name: "ge", Doc: "at least"},
	{Name: "gt", Doc: "more than"},
	{Name: "between", Doc: "[low, high], both included"},
	{Name: "any_of", Doc: "one of a list"},
	{Name: "prefix", Doc: "text or data that begins with this"},
	{Name: "padded", Doc: "these bytes and then zeros only, as private data comes: {padded: {text: hello}}"},
	{Name: "re", Doc: "text or data in which the regular expression (of Go) is found"},
	{Name: "approx", Doc: "about this, with tol: {approx: 100, tol: 5%} or {approx: 1s, tol: 20ms}"},
}

// operators are their names.
var operators = keyNames(matchers)

// conditions compiles a matcher: a plain value, or a mapping of operators which must all hold.
func (c *compiler) conditions(argument *verb.Argument, node *syntax.Node, at place) ([]Condition, bool) {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping || (argument.Type == verb.Data && len(node.Pairs) > 0 && isDataKey(node.Pairs[0].Key.Value)) {
		operand := c.operand(argument, node, at)
		return []Condition{{Operator: "eq", Operands: []*Value{operand}, Span: node.Span()}}, operand != nil
	}
	var list []Condition
	good := true
	for _, pair := range node.Pairs {
		if pair.Key.Value == "tol" {
			continue
		}
		condition, ok := c.condition(argument, pair, node, at)
		list, good = append(list, condition), good && ok
	}
	if len(node.Pairs) == 0 {
		c.errors.Report(diag.MissingKey, node.Span(), "a matcher without an operator").WithHint("%s", diag.ThereAre(operators))
		return nil, false
	}
	return list, good
}

func (c *compiler) condition(argument *verb.Argument, pair syntax.Pair, whole *syntax.Node, at place) (Condition, bool) {
	condition := Condition{Operator: pair.Key.Value, Span: pair.Key.Span()}
	single := func() (Condition, bool) {
		operand := c.operand(argument, pair.Value, at)
		condition.Operands = []*Value{operand}
		return condition, operand != nil
	}
	switch condition.Operator {
	case "eq", "ne":
		return single()
	case "lt", "le", "gt", "ge":
		return c.ordered(argument, pair, single)
	case "prefix":
		if argument.Type != verb.Data && argument.Type != verb.Text {
			return c.wrongOperator(condition, argument, "data and text")
		}
		return single()
	case "padded":
		if argument.Type != verb.Data {
			return c.wrongOperator(condition, argument, "data")
		}
		return single()
	case "between":
		if _, ok := c.ordered(argument, pair, nil); !ok {
			return condition, false
		}
		if pair.Value.Kind != syntax.Sequence || len(pair.Value.Items) != 2 {
			c.errors.Report(diag.WrongShape, pair.Value.Span(), "between wants a list of two: [low, high]")
			return condition, false
		}
		return c.several(condition, argument, pair.Value, at)
	case "any_of":
		if pair.Value.Kind != syntax.Sequence || len(pair.Value.Items) == 0 {
			c.errors.Report(diag.WrongShape, pair.Value.Span(), "any_of wants a list")
			return condition, false
		}
		return c.several(condition, argument, pair.Value, at)
	case "re":
		return c.pattern(condition, argument, pair.Value, at)
	case "approx":
		return c.approx(condition, argument, pair, whole, at)
	}
	c.errors.Report(diag.UnknownKey, pair.Key.Span(), "no matcher is called %q", pair.Key.Value).
		WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, operators), diag.ThereAre(operators)))
	return condition, false
}

func (c *compiler) operand(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if argument.Type == verb.Data {
		return c.data(argument.Name, node, at)
	}
	return c.scalar(argument, node, at)
}

func (c *compiler) several(condition Condition, argument *verb.Argument, node *syntax.Node, at place) (Condition, bool) {
	good := true
	for _, item := range node.Items {
		operand := c.operand(argument, item, at)
		condition.Operands = append(condition.Operands, operand)
		good = good && operand != nil
	}
	return condition, good
}

// ordered refuses comparisons of what has no order.
func (c *compiler) ordered(argument *verb.Argument, pair syntax.Pair, next func() (Condition, bool)) (Condition, bool) {
	condition := Condition{Operator: pair.Key.Value, Span: pair.Key.Span()}
	switch argument.Type {
	case verb.Integer, verb.Unsigned, verb.Size, verb.Duration, verb.Status:
	default:
		return c.wrongOperator(condition, argument, "numbers and durations")
	}
	if next == nil {
		return condition, true
	}
	return next()
}

func (c *compiler) wrongOperator(condition Condition, argument *verb.Argument, of string) (Condition, bool) {
	c.errors.Report(diag.WrongType, condition.Span, "%q is for %s, and %s is %s", condition.Operator, of, argument.Name, argument.Type)
	return condition, false
}
