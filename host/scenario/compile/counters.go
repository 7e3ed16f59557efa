package compile

import (
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// deltaKey is what a counter is compared by.
const deltaKey = "delta"

// counters compiles {NAME: {delta: matcher}}.  Which names there are, only the device knows.
func (c *compiler) counters(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping || len(node.Pairs) == 0 {
		c.errors.Report(diag.WrongShape, node.Span(), "counters is a mapping of names").WithHint("counters: {port_rcv_errors: {delta: 0}}")
		return nil
	}
	checks := make(verb.CounterChecks, 0, len(node.Pairs))
	var parts []*Value
	var matchers [][]Condition
	for _, pair := range node.Pairs {
		matcher, good := c.delta(pair, at)
		if !good {
			return nil
		}
		checks, matchers = append(checks, verb.CounterCheck{Name: pair.Key.Value}), append(matchers, matcher)
		for i := range matcher {
			parts = append(parts, matcher[i].Operands...)
		}
	}
	return c.combined(node.Span(), parts, func(values []any) (any, error) {
		bound := make(verb.CounterChecks, len(checks))
		for i := range checks {
			given := make([][]any, len(matchers[i]))
			for j := range given {
				count := len(matchers[i][j].Operands)
				given[j], values = append([]any(nil), values[:count]...), values[count:]
			}
			bound[i] = verb.CounterCheck{Name: checks[i].Name, Check: func(delta int) (bool, string) {
				return matches(matchers[i], given, delta)
			}}
		}
		return bound, nil
	})
}

// delta compiles the matcher of one counter.
func (c *compiler) delta(pair syntax.Pair, at place) ([]Condition, bool) {
	if pair.Value.Kind != syntax.Mapping || len(pair.Value.Pairs) != 1 || pair.Value.Get(deltaKey) == nil {
		c.errors.Report(diag.WrongShape, pair.Value.Span(), "a counter is compared by how much it has grown").
			WithHint("%s: {delta: 0}, or {delta: {le: 10}}", pair.Key.Value)
		return nil, false
	}
	conditions, good := c.conditions(&verb.Argument{Name: deltaKey, Type: verb.Integer}, pair.Value.Get(deltaKey), at)
	return conditions, good
}

// matches holds a number against a matcher whose operands are known.
func matches(conditions []Condition, operands [][]any, got int) (ok bool, want string) {
	ok = true
	var wants []string
	for i := range conditions {
		if !holds(conditions[i].Operator, got, operands[i]) {
			ok = false
			wants = append(wants, describe(conditions[i].Operator, operands[i], func(operand any) string { return Show(operand, verb.Integer) }))
		}
	}
	return ok, strings.Join(wants, " and ")
}
