package compile

import (
	"bytes"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// matcher is a key with which `expect` compares.
type matcher struct {
	ast.Key
	// of are the types of what it compares, nil for all, and what they are in messages.
	of   []verb.Type
	what string
	// operands reads what it compares with, in which nil stands for what is wrong; nil: one value of the same type.
	operands func(d *decoder, argument *verb.Argument, pair syntax.Pair, whole *syntax.Node, at place) []*Value
	// holds compares what there is, never nil, with the operands.
	holds func(got any, operands []any) bool
	// wants is a format of the operands for messages; those of a list are joined.
	wants string
	list  bool
}

// ordered are the types that have an order.
var ordered = []verb.Type{verb.Integer, verb.Unsigned, verb.Size, verb.Duration, verb.Status, verb.Rate, verb.Number}

const orderedTypes = "numbers and durations"

// matchers are those keys but for tol, which belongs to approx.
var matchers = []matcher{
	{Key: ast.Key{Name: "eq", Doc: "equal; a value without a matcher means the same"}, wants: "%s",
		holds: func(got any, to []any) bool { return equal(got, to[0]) }},
	{Key: ast.Key{Name: "ne", Doc: "anything but this"}, wants: "anything but %s",
		holds: func(got any, to []any) bool { return !equal(got, to[0]) }},
	{Key: ast.Key{Name: "le", Doc: "at most"}, of: ordered, what: orderedTypes, wants: "at most %s",
		holds: func(got any, to []any) bool { return compareNumbers(got, to[0]) <= 0 }},
	{Key: ast.Key{Name: "lt", Doc: "less than"}, of: ordered, what: orderedTypes, wants: "less than %s",
		holds: func(got any, to []any) bool { return compareNumbers(got, to[0]) < 0 }},
	{Key: ast.Key{Name: "ge", Doc: "at least"}, of: ordered, what: orderedTypes, wants: "at least %s",
		holds: func(got any, to []any) bool { return compareNumbers(got, to[0]) >= 0 }},
	{Key: ast.Key{Name: "gt", Doc: "more than"}, of: ordered, what: orderedTypes, wants: "more than %s",
		holds: func(got any, to []any) bool { return compareNumbers(got, to[0]) > 0 }},
	{Key: ast.Key{
		Name: "between", Doc: "[low, high], both included",
	}, of: ordered, what: orderedTypes, wants: "between %s and %s", operands: (*decoder).lowAndHigh,
		holds: func(got any, to []any) bool {
			return compareNumbers(got, to[0]) >= 0 && compareNumbers(got, to[1]) <= 0
		}},
	{Key: ast.Key{Name: "any_of", Doc: "one of a list"}, wants: "one of %s", list: true, operands: (*decoder).anyOf,
		holds: func(got any, to []any) bool {
			return slices.ContainsFunc(to, func(each any) bool { return equal(got, each) })
		}},
	{Key: ast.Key{
		Name: "prefix", Doc: "text or data that begins with this",
	}, of: []verb.Type{verb.Data, verb.Text}, what: "data and text", wants: "something that begins with %s",
		holds: func(got any, to []any) bool { return bytes.HasPrefix(asBytes(got), asBytes(to[0])) }},
	{Key: ast.Key{
		Name: "padded", Doc: "these bytes and then zeros only, as private data comes: {padded: {text: hello}}",
	}, of: []verb.Type{verb.Data}, what: "data", wants: "%s and then zeros only",
		holds: func(got any, to []any) bool {
			padding, begins := bytes.CutPrefix(asBytes(got), asBytes(to[0]))
			return begins && len(bytes.Trim(padding, "\x00")) == 0
		}},
	{Key: ast.Key{Name: "re", Doc: "text or data in which the regular expression (of Go) is found"}, of: []verb.Type{
		verb.Text, verb.Word, verb.Data,
	}, what: "text and data", wants: "something like /%s/", operands: (*decoder).pattern,
		holds: func(got any, to []any) bool { return to[0].(*regexp.Regexp).Match(asBytes(got)) }},
	{Key: ast.Key{
		Name: "approx", Doc: "about this, with tol: {approx: 100, tol: 5%} or {approx: 1s, tol: 20ms}",
	}, of: ordered, what: orderedTypes, wants: "%s ± %s", operands: (*decoder).approx,
		holds: func(got any, to []any) bool {
			low, high := around(to)
			value := number(got)
			return value.Cmp(low) >= 0 && value.Cmp(high) <= 0
		}},
}

// Matchers are the keys with which `expect` compares.
func Matchers() []ast.Key {
	keys := make([]ast.Key, len(matchers))
	for i := range matchers {
		keys[i] = matchers[i].Key
	}
	return keys
}

// row is the one of a table that has a name; nil where none has.
func row[R any](rows []R, name string, nameOf func(*R) string) *R {
	for i := range rows {
		if nameOf(&rows[i]) == name {
			return &rows[i]
		}
	}
	return nil
}

// namesOf are those of the rows of a table.
func namesOf[R any](rows []R, nameOf func(*R) string) []string {
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = nameOf(&rows[i])
	}
	return names
}

func (m *matcher) key() string { return m.Name }

// Condition is one comparison with a value.
type Condition struct {
	*matcher
	Operands []*Value
	Span     diag.Span
}

// equals is the condition of a value without a matcher.
func equals(operand *Value, span diag.Span) []Condition {
	return []Condition{{&matchers[0], []*Value{operand}, span}}
}

// conditions compiles a matcher: a plain value, or a mapping of comparisons which must all hold.
func (d *decoder) conditions(argument *verb.Argument, node *syntax.Node, at place) ([]Condition, bool) {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping ||
		(argument.Type == verb.Data && len(node.Pairs) > 0 && isDataKey(node.Pairs[0].Key.Value)) {
		operand := d.operand(argument, node, at)
		return equals(operand, node.Span()), operand != nil
	}
	if len(node.Pairs) == 0 {
		d.errors.Report(diag.MissingKey, node.Span(), "a matcher without an operator").WithHint(
			"%s", diag.ThereAre(namesOf(matchers, (*matcher).key)),
		)
		return nil, false
	}
	var list []Condition
	good := true
	for _, pair := range node.Pairs {
		if pair.Key.Value == "tol" {
			continue
		}
		condition := Condition{row(matchers, pair.Key.Value, (*matcher).key), nil, pair.Key.Span()}
		switch m := condition.matcher; {
		case m == nil:
			d.errors.Report(diag.UnknownKey, condition.Span, "no matcher is called %q", pair.Key.Value).WithOneOf(
				pair.Key.Value, namesOf(matchers, (*matcher).key),
			)
		case m.of != nil && !slices.Contains(m.of, argument.Type):
			d.errors.Report(
				diag.WrongType, condition.Span, "%q is for %s, and %s is %s", m.Name, m.what, argument.Name,
				argument.Type,
			)
		case m.operands != nil:
			condition.Operands = m.operands(d, argument, pair, node, at)
		default:
			condition.Operands = []*Value{d.operand(argument, pair.Value, at)}
		}
		good = good && len(condition.Operands) > 0 && !slices.Contains(condition.Operands, nil)
		list = append(list, condition)
	}
	return list, good
}

func (d *decoder) operand(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if argument.Type == verb.Data {
		return d.data(argument, node, at)
	}
	return d.scalar(argument, node, at)
}

func (d *decoder) operandList(argument *verb.Argument, node *syntax.Node, at place) []*Value {
	list := make([]*Value, len(node.Items))
	for i, item := range node.Items {
		list[i] = d.operand(argument, item, at)
	}
	return list
}

func (d *decoder) lowAndHigh(argument *verb.Argument, pair syntax.Pair, _ *syntax.Node, at place) []*Value {
	if pair.Value.Kind != syntax.Sequence || len(pair.Value.Items) != 2 {
		d.errors.Report(diag.WrongShape, pair.Value.Span(), "between wants a list of two: [low, high]")
		return nil
	}
	return d.operandList(argument, pair.Value, at)
}

func (d *decoder) anyOf(argument *verb.Argument, pair syntax.Pair, _ *syntax.Node, at place) []*Value {
	if pair.Value.Kind != syntax.Sequence || len(pair.Value.Items) == 0 {
		d.errors.Report(diag.WrongShape, pair.Value.Span(), "any_of wants a list")
		return nil
	}
	return d.operandList(argument, pair.Value, at)
}

// pattern compiles {re: ..}, a regular expression of Go's syntax.
func (d *decoder) pattern(_ *verb.Argument, pair syntax.Pair, _ *syntax.Node, at place) []*Value {
	text := d.scalar(&verb.Argument{Name: "re", Type: verb.Text}, pair.Value, at)
	return []*Value{d.converted(text, compilePattern)}
}

// compilePattern makes a *regexp.Regexp of a text.
func compilePattern(text any) (any, error) {
	compiled, err := regexp.Compile(text.(string))
	if err != nil {
		return nil, diag.Wrong(
			diag.WrongType, "not a regular expression: "+strings.TrimPrefix(err.Error(), "error parsing regexp: "),
			"the syntax is that of RE2",
		)
	}
	return compiled, nil
}

// approx compiles {approx: x, tol: 5%}; the tolerance is a part of x, or an amount.
func (d *decoder) approx(argument *verb.Argument, pair syntax.Pair, whole *syntax.Node, at place) []*Value {
	around := d.operand(argument, pair.Value, at)
	tolerance := whole.Get("tol")
	if tolerance == nil {
		d.errors.Report(diag.MissingKey, pair.Key.Span(), "approx needs a tolerance").WithHint("{approx: .., tol: 5%%}")
		return nil
	}
	return []*Value{around, d.tolerance(argument, tolerance, at)}
}

// percent is a tolerance relative to the value.
type percent float64

func (p percent) String() string { return fmt.Sprintf("%g%%", float64(p)) }

func (d *decoder) tolerance(argument *verb.Argument, node *syntax.Node, at place) *Value {
	number, isPercent := strings.CutSuffix(node.Value, "%")
	if !isPercent || node.Kind != syntax.Scalar {
		return d.operand(argument, node, at)
	}
	p, err := strconv.ParseFloat(number, 64)
	if err != nil || p < 0 {
		return d.refuse(
			diag.WrongType, node.Span(), "write 5%, or an amount", "%s is not a tolerance", quoted(node.Value),
		)
	}
	return constant(percent(p), node.Span())
}

// Check compares a field with the expectation.  When it does not hold, want is the expected value in
// words.  The error is an EvaluationError.
func (e *Expectation) Check(env expression.Env, got any) (ok bool, want string, err error) {
	var wants []string
	for i := range e.Conditions {
		condition := &e.Conditions[i]
		operands := make([]any, len(condition.Operands))
		for j, operand := range condition.Operands {
			if operands[j], err = operand.Get(env); err != nil {
				return false, "", err
			}
		}
		if got == nil || !condition.holds(got, operands) {
			wants = append(wants, condition.describe(operands, e.Show))
		}
	}
	return wants == nil, strings.Join(wants, " and "), nil
}

// describe is the expected value in words.
func (m *matcher) describe(operands []any, show func(any) string) string {
	words, shown := make([]string, len(operands)), make([]any, len(operands))
	for i, operand := range operands {
		words[i] = show(operand)
		shown[i] = words[i]
	}
	if m.list {
		shown = []any{strings.Join(words, ", ")}
	}
	return fmt.Sprintf(m.wants, shown...)
}

// around is the range of approx.
func around(operands []any) (low, high *big.Rat) {
	center, width := number(operands[0]), number(operands[1])
	if p, relative := operands[1].(percent); relative {
		part := new(big.Rat).Mul(new(big.Rat).Abs(center), number(float64(p)))
		width = part.Quo(part, big.NewRat(100, 1))
	}
	return new(big.Rat).Sub(center, width), new(big.Rat).Add(center, width)
}

// compareNumbers compares two numbers, or two times.
func compareNumbers(a, b any) int { return number(a).Cmp(number(b)) }

func equal(got, want any) bool {
	switch w := want.(type) {
	case verb.DataValue:
		return bytes.Equal(asBytes(got), w.Bytes)
	case []byte:
		return bytes.Equal(asBytes(got), w)
	case int:
		if _, wide := got.(uint64); wide {
			return expression.Bits(got) == expression.Bits(want)
		}
	case uint64:
		if _, small := got.(int); small {
			return expression.Bits(got) == expression.Bits(want)
		}
	}
	return got == want
}

func asBytes(value any) []byte {
	switch v := value.(type) {
	case []byte:
		return v
	case verb.DataValue:
		return v.Bytes
	case string:
		return []byte(v)
	}
	return nil
}

// number makes integers, with a sign or without, fractions and durations comparable.
func number(value any) *big.Rat {
	switch v := value.(type) {
	case time.Duration:
		return big.NewRat(int64(v), 1)
	case float64:
		if exact := new(big.Rat).SetFloat64(v); exact != nil {
			return exact
		}
	}
	if n := expression.Exact(value); n != nil {
		return new(big.Rat).SetInt(n)
	}
	return new(big.Rat)
}

// maxShown is how many bytes of data a message shows.
const maxShown = 48

// Show prints a value of the field, in hex where the scenario writes it so or the kernel's tools do.
func (e *Expectation) Show(value any) string {
	if e.Hex {
		return ShowHex(value, e.Type)
	}
	return Show(value, e.Type)
}

// ShowHex is Show with integers in hex.
func ShowHex(value any, t verb.Type) string {
	switch value.(type) {
	case int, uint64:
		return fmt.Sprintf("%#x", value)
	}
	return Show(value, t)
}

// Show prints a value for a message: statuses with their names, data as text where it is text.
func Show(value any, t verb.Type) string {
	switch v := value.(type) {
	case nil:
		return "no value"
	case int:
		if t == verb.Status && v != 0 {
			return rdmacore.RejectReason(v)
		}
		if t == verb.Size {
			return quantity.Size(int64(v))
		}
	case []int:
		if t == verb.Sizes {
			words := make([]string, len(v))
			for i := range v {
				words[i] = quantity.Size(int64(v[i]))
			}
			return "[" + strings.Join(words, " ") + "]"
		}
	case time.Duration:
		return quantity.Time(v)
	case float64:
		if t == verb.Rate {
			return quantity.Rate(v)
		}
	case verb.DataValue:
		return showBytes(v.Bytes)
	case []byte:
		return showBytes(v)
	case []string:
		switch {
		case t == verb.Words:
			return strings.Join(v, "|")
		case t == verb.Instances && len(v) > 1:
			return v[0] + ".." + v[len(v)-1]
		}
	case map[string]any:
		if t == verb.Options {
			words := make([]string, 0, len(v))
			for _, name := range sortedKeys(v) {
				of := verb.Any
				if _, are := v[name].([]int); are {
					of = verb.Sizes
				}
				words = append(words, name+": "+Show(v[name], of))
			}
			return "{" + strings.Join(words, ", ") + "}"
		}
	case string:
		if t == verb.Text {
			return fmt.Sprintf("%q", v)
		}
	}
	return fmt.Sprint(value)
}

func showBytes(b []byte) string {
	body := bytes.TrimRight(b, "\x00") // private data is padded with zeros
	padding := len(b) - len(body)
	shown := body[:min(len(body), maxShown)]
	text := fmt.Sprintf("% x", shown)
	if printable(shown) {
		text = fmt.Sprintf("%q", shown)
	}
	if len(shown) < len(body) {
		text += fmt.Sprintf(" and %d bytes more", len(body)-len(shown))
	}
	if padding > 0 {
		text += fmt.Sprintf(" and %d zero bytes", padding)
	}
	return strings.TrimPrefix(text, "\"\" and ")
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return true
}
