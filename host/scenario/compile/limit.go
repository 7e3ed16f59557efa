package compile

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Limit is one comparison, "p99 < 4us" or "avg >= baseline.avg * 0.97".
type Limit struct {
	Text     string
	Span     diag.Span
	Field    string
	Operator string
	unit     unit
	operand  *Value // a number in the base unit
}

var (
	limitForm   = regexp.MustCompile(`^\s*([a-z0-9_]+)\s*(<=|>=|==|<|>)\s*(.*\S)\s*$`)
	numberForm  = regexp.MustCompile(`^-?[0-9][0-9._]*\s*[A-Za-zµ/]*$`)
	perSecondIn = regexp.MustCompile(`^(-?[0-9][0-9.]*)\s*/s$`)
)

func (c *compiler) limit(m *metric, node *syntax.Node, s *scope) (Limit, bool) {
	limit := Limit{Text: node.Value, Span: node.Span()}
	match := limitForm.FindStringSubmatchIndex(node.Value)
	if match == nil {
		c.errors.Report(diag.WrongType, node.Span(), "%s is no limit", quoted(node.Value)).WithHint("for example: p99 < 4us")
		return limit, false
	}
	part := func(i int) string { return node.Value[match[2*i]:match[2*i+1]] }
	limit.Field, limit.Operator = part(1), part(2)
	field := m.field(limit.Field)
	if field == nil {
		bad := checkWord(&verb.Argument{Name: "field", Type: verb.Word, Words: m.fieldNames()}, limit.Field)
		c.errors.Report(diag.UnknownField, node.Span(), "%s has no field %q", m.name, limit.Field).WithHint("%s", bad.hint)
		return limit, false
	}
	limit.unit = field.unit
	limit.operand = c.limitOperand(field, node, part(3), match[6], s)
	return limit, limit.operand != nil
}

// limitOperand compiles what a field is compared with: a constant with its unit, or an expression, which may mention
// the baseline.
func (c *compiler) limitOperand(field *metricField, node *syntax.Node, text string, offset int, s *scope) *Value {
	plain := *node
	plain.Style, plain.Value = syntax.Plain, text
	argument := field.unit.argument(field.name)
	if match := perSecondIn.FindStringSubmatch(text); match != nil && field.unit == perSecond {
		n, err := strconv.ParseFloat(match[1], 64)
		if err == nil {
			return constant(n, node.Span())
		}
	}
	if numberForm.MatchString(text) && (field.unit != bitsPerSecond || !isNumber(text)) {
		return c.converted(c.literal(argument, &plain), toBase)
	}
	defer c.onlyScope()()
	inner := s.inner()
	inner.add(baselineName, expression.Any, nil)
	if expression.Contains(text) {
		value := c.scalar(&verb.Argument{Name: field.name, Type: verb.Any}, &plain, place{scope: inner})
		return c.converted(value, func(v any) (any, error) { return fitLimit(argument, v) })
	}
	piece := expression.Piece{Text: text, Expression: true, Offset: offset}
	value := c.expression(&verb.Argument{Name: field.name, Type: verb.Any}, node, piece, place{scope: inner})
	return c.converted(value, func(v any) (any, error) { return fitLimit(argument, v) })
}

// baselineName is the name under which a limit finds what an earlier run measured; nil when there is none.
const baselineName = "baseline"

// onlyScope hides what steps and roles make, of which a threshold knows nothing.
func (c *compiler) onlyScope() (restore func()) {
	timeline, roles := c.timeline, c.roles
	c.timeline, c.roles = newTimeline(), nil
	return func() { c.timeline, c.roles = timeline, roles }
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// fitLimit turns the result of an expression into a number of the base unit.
func fitLimit(argument *verb.Argument, value any) (any, error) {
	if text, isText := value.(string); isText {
		read, bad := literal(argument, syntax.New(nil, text))
		if bad != nil {
			return nil, bad
		}
		value = read
	}
	n, ok := baseNumber(value)
	if _, isTime := value.(time.Duration); isTime && argument.Type != verb.Duration {
		ok = false
	}
	if !ok || math.IsNaN(n) {
		return nil, wrongType(argument.Type.String(), expression.Word(value), "")
	}
	return n, nil
}

func toBase(value any) (any, error) {
	n, _ := baseNumber(value)
	return n, nil
}

// Excess tells how far a value of the field, in its base unit, is beyond the limit, as a part of it: more than 0 where the
// limit does not hold, and else the less the further it is from it.  env has the baseline.
func (l *Limit) Excess(got float64, env expression.Env) (float64, error) {
	value, err := l.operand.Get(env)
	if err != nil {
		return 0, err
	}
	limit := value.(float64)
	excess := got - limit
	switch l.Operator {
	case ">", ">=":
		excess = -excess
	case "==":
		excess = math.Abs(excess)
	}
	if limit != 0 {
		excess /= math.Abs(limit)
	}
	if compare(got, l.Operator, limit) {
		return min(excess, 0), nil
	}
	return max(excess, math.SmallestNonzeroFloat64), nil // also of a limit that is met, where that is not enough
}

// Show is a value of the field with its unit.
func (l *Limit) Show(got float64) string {
	switch l.unit {
	case nanoseconds:
		return quantity.Time(time.Duration(got)) // with all its digits: a rounded one could seem to hold
	case bitsPerSecond:
		return quantity.Rate(significant(got))
	case perSecond:
		return fmt.Sprintf("%.0f/s", got)
	}
	return fmt.Sprintf("%.0f", got)
}

// significant keeps four digits: more of them mean nothing in a rate that was measured.
func significant(value float64) float64 {
	if value == 0 {
		return 0
	}
	scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(value))))
	return math.Round(value*scale) / scale
}

// Grows tells whether the field only grows while something is measured, so that a lower limit on it says
// nothing before the end.
func (l *Limit) Grows() bool { return l.unit == plainCount }
