package compile

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Expectation is what one field of a result must be.
type Expectation struct {
	Field string
	// Index is the field's in the verb's results; -1 for errno and for fields of a decoded record.
	Index int
	// Span is the key in the file; the zero span for a default expectation.
	Span diag.Span
	// Type tells how to print values.
	Type       verb.Type
	Conditions []Condition
	// Hex tells to print integers in hex.
	Hex bool
	// Default tells that the scenario does not say it, the verb does.
	Default bool
}

// Errno is the pseudo field for the errno of a call that is expected to fail.
const Errno = "errno"

// Condition is one comparison with a value.
type Condition struct {
	Operator string // eq, ne, lt, le, gt, ge, between, any_of, prefix, re, approx
	Operands []*Value
	Span     diag.Span
}

// None is the pseudo field for what must not come.
const None = "none"

// expectsNothing reads `expect: {none: true}`, which stands alone and says how long nothing may come.
func (d *decoder) expectsNothing(step *ast.Step, at place) bool {
	if step.Expect == nil || step.Expect.Get(None) == nil {
		return false
	}
	key := step.Expect.Key(None)
	value := d.knownIn(&verb.Argument{Name: None, Type: verb.Boolean}, step.Expect.Get(None), at.scope)
	within := step.Within != nil || step.Body.Get("within") != nil
	switch {
	case !step.Verb.Waits:
		d.errors.Report(diag.UnknownField, key.Span(), "%s waits for nothing, so nothing cannot be expected of it", step.Verb.Name)
	case len(step.Expect.Pairs) > 1:
		d.errors.Report(diag.Conflict, key.Span(), "when nothing comes there is nothing else to expect")
	case value == true && !within:
		d.errors.Report(diag.MissingKey, key.Span(), "how long must nothing come? \"within\" is missing").WithHint("within: 200ms")
	case value == true && step.As != nil:
		d.errors.Report(diag.NothingToName, step.Node.Key("as").Span(), "when nothing comes there is nothing to name")
	case value == false:
		d.errors.Report(diag.OutOfRange, key.Span(), "none is true, or left out")
	}
	return true
}

// expectsAnything reads `expect: any`: not even the defaults hold.
func (d *decoder) expectsAnything(step *ast.Step, v *verb.Verb) bool {
	if step.AnyResult && len(v.Results) == 0 && !v.CanFail() {
		d.errors.Report(diag.UnknownField, step.Node.Key("expect").Span(), "%s has no result to expect something of", v.Name)
	}
	return step.AnyResult
}

// expectations compiles `expect`, and adds the defaults of the fields that it does not name.
func (d *decoder) expectations(step *ast.Step, v *verb.Verb, layout verb.FieldLayout, at place) []Expectation {
	var list []Expectation
	named := make(map[string]bool)
	if step.Expect != nil {
		node, scope := at.scope.resolve(step.Expect)
		for _, pair := range node.Pairs {
			named[pair.Key.Value] = true
			if e, ok := d.expectation(pair, v, layout, at.in(scope)); ok {
				list = append(list, e)
			}
		}
	}
	if named[Errno] {
		d.ofFailure(list, v)
		return list
	}
	for i := range v.Results {
		if r := &v.Results[i]; r.Default != nil && !named[r.Name] {
			list = append(list, Expectation{
				Field: r.Name, Index: i, Type: r.Type, Default: true, Span: step.Key.Span(),
				Conditions: []Condition{{Operator: "eq", Operands: []*Value{constant(r.Default, step.Key.Span())}}},
			})
		}
	}
	return list
}

// ofFailure refuses fields beside errno that a call that fails does not have.
func (d *decoder) ofFailure(list []Expectation, v *verb.Verb) {
	for i := range list {
		e := &list[i]
		if e.Field == Errno || e.Index >= 0 && v.Results[e.Index].OfFailure {
			continue
		}
		d.errors.Report(diag.Conflict, e.Span, "a call that fails with errno has no %s", e.Field).
			WithHint("a step that expects success looks at its results; one that expects errno, at what failed")
	}
}

func (d *decoder) expectation(pair syntax.Pair, v *verb.Verb, layout verb.FieldLayout, at place) (Expectation, bool) {
	e := Expectation{Field: pair.Key.Value, Index: v.Result(pair.Key.Value), Span: pair.Key.Span()}
	var argument *verb.Argument
	switch {
	case e.Index >= 0:
		result := &v.Results[e.Index]
		argument, e.Hex = &verb.Argument{Name: result.Name, Type: result.Type, Words: result.Words}, result.Hex
	case e.Field == Errno && v.CanFail():
		argument = errnoArgument()
	default:
		for _, field := range layout {
			if field.Name == e.Field {
				argument = &verb.Argument{Name: field.Name, Type: verb.Integer}
				if field.Bytes == 8 {
					argument.Type = verb.Unsigned
				}
			}
		}
	}
	if argument == nil {
		d.unknownField(pair.Key, v, layout)
		return e, false
	}
	e.Type = argument.Type
	var good bool
	e.Conditions, good = d.conditions(argument, pair.Value, at)
	for _, condition := range e.Conditions {
		e.Hex = e.Hex || slices.ContainsFunc(condition.Operands, func(v *Value) bool { return v != nil && v.Hex })
	}
	return e, good
}

func (d *decoder) unknownField(key *syntax.Node, v *verb.Verb, layout verb.FieldLayout) {
	var fields []string
	for _, result := range v.Results {
		fields = append(fields, result.Name)
	}
	for _, field := range layout {
		fields = append(fields, field.Name)
	}
	if v.CanFail() {
		fields = append(fields, Errno)
	}
	if len(fields) == 0 {
		d.errors.Report(diag.UnknownField, key.Span(), "%s has no result to expect something of", v.Name)
		return
	}
	d.errors.Report(diag.UnknownField, key.Span(), "the result of %s has no field %q", v.Name, key.Value).
		WithHint("%s", hintOr(diag.DidYouMean(key.Value, fields), diag.ThereAre(fields)))
}

// duration compiles a duration of a step or a file; nil for none.
func (d *decoder) duration(name string, node *syntax.Node, at place) *Value {
	if node == nil {
		return nil
	}
	return d.scalar(&verb.Argument{Name: name, Type: verb.Duration, Min: 0, Max: int64(24 * 365 * time.Hour)}, node, at)
}

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
func (d *decoder) conditions(argument *verb.Argument, node *syntax.Node, at place) ([]Condition, bool) {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping || (argument.Type == verb.Data && len(node.Pairs) > 0 && isDataKey(node.Pairs[0].Key.Value)) {
		operand := d.operand(argument, node, at)
		return []Condition{{Operator: "eq", Operands: []*Value{operand}, Span: node.Span()}}, operand != nil
	}
	var list []Condition
	good := true
	for _, pair := range node.Pairs {
		if pair.Key.Value == "tol" {
			continue
		}
		condition, ok := d.condition(argument, pair, node, at)
		list, good = append(list, condition), good && ok
	}
	if len(node.Pairs) == 0 {
		d.errors.Report(diag.MissingKey, node.Span(), "a matcher without an operator").WithHint("%s", diag.ThereAre(operators))
		return nil, false
	}
	return list, good
}

func (d *decoder) condition(argument *verb.Argument, pair syntax.Pair, whole *syntax.Node, at place) (Condition, bool) {
	condition := Condition{Operator: pair.Key.Value, Span: pair.Key.Span()}
	single := func() (Condition, bool) {
		operand := d.operand(argument, pair.Value, at)
		condition.Operands = []*Value{operand}
		return condition, operand != nil
	}
	switch condition.Operator {
	case "eq", "ne":
		return single()
	case "lt", "le", "gt", "ge":
		return d.ordered(argument, pair, single)
	case "prefix":
		if argument.Type != verb.Data && argument.Type != verb.Text {
			return d.wrongOperator(condition, argument, "data and text")
		}
		return single()
	case "padded":
		if argument.Type != verb.Data {
			return d.wrongOperator(condition, argument, "data")
		}
		return single()
	case "between":
		if _, ok := d.ordered(argument, pair, nil); !ok {
			return condition, false
		}
		if pair.Value.Kind != syntax.Sequence || len(pair.Value.Items) != 2 {
			d.errors.Report(diag.WrongShape, pair.Value.Span(), "between wants a list of two: [low, high]")
			return condition, false
		}
		return d.several(condition, argument, pair.Value, at)
	case "any_of":
		if pair.Value.Kind != syntax.Sequence || len(pair.Value.Items) == 0 {
			d.errors.Report(diag.WrongShape, pair.Value.Span(), "any_of wants a list")
			return condition, false
		}
		return d.several(condition, argument, pair.Value, at)
	case "re":
		return d.pattern(condition, argument, pair.Value, at)
	case "approx":
		return d.approx(condition, argument, pair, whole, at)
	}
	d.errors.Report(diag.UnknownKey, pair.Key.Span(), "no matcher is called %q", pair.Key.Value).
		WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, operators), diag.ThereAre(operators)))
	return condition, false
}

func (d *decoder) operand(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if argument.Type == verb.Data {
		return d.data(argument, node, at)
	}
	return d.scalar(argument, node, at)
}

func (d *decoder) several(condition Condition, argument *verb.Argument, node *syntax.Node, at place) (Condition, bool) {
	good := true
	for _, item := range node.Items {
		operand := d.operand(argument, item, at)
		condition.Operands = append(condition.Operands, operand)
		good = good && operand != nil
	}
	return condition, good
}

// ordered refuses comparisons of what has no order.
func (d *decoder) ordered(argument *verb.Argument, pair syntax.Pair, next func() (Condition, bool)) (Condition, bool) {
	condition := Condition{Operator: pair.Key.Value, Span: pair.Key.Span()}
	switch argument.Type {
	case verb.Integer, verb.Unsigned, verb.Size, verb.Duration, verb.Status:
	default:
		return d.wrongOperator(condition, argument, "numbers and durations")
	}
	if next == nil {
		return condition, true
	}
	return next()
}

func (d *decoder) wrongOperator(condition Condition, argument *verb.Argument, of string) (Condition, bool) {
	d.errors.Report(diag.WrongType, condition.Span, "%q is for %s, and %s is %s", condition.Operator, of, argument.Name, argument.Type)
	return condition, false
}

// pattern compiles {re: ..}, a regular expression of Go's syntax.
func (d *decoder) pattern(condition Condition, argument *verb.Argument, node *syntax.Node, at place) (Condition, bool) {
	if argument.Type != verb.Text && argument.Type != verb.Word && argument.Type != verb.Data {
		return d.wrongOperator(condition, argument, "text and data")
	}
	text := d.scalar(&verb.Argument{Name: "re", Type: verb.Text}, node, at)
	operand := d.converted(text, func(v any) (any, error) {
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
func (d *decoder) approx(condition Condition, argument *verb.Argument, pair syntax.Pair, whole *syntax.Node, at place) (Condition, bool) {
	if _, ok := d.ordered(argument, pair, nil); !ok {
		return condition, false
	}
	around := d.operand(argument, pair.Value, at)
	tolerance := whole.Get("tol")
	if tolerance == nil {
		d.errors.Report(diag.MissingKey, pair.Key.Span(), "approx needs a tolerance").WithHint("{approx: .., tol: 5%%}")
		return condition, false
	}
	width := d.tolerance(argument, tolerance, at)
	condition.Operands = []*Value{around, width}
	return condition, around != nil && width != nil
}

// percent is a tolerance relative to the value.
type percent float64

func (d *decoder) tolerance(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if number, isPercent := strings.CutSuffix(node.Value, "%"); isPercent && node.Kind == syntax.Scalar {
		p, err := strconv.ParseFloat(number, 64)
		if err != nil || p < 0 {
			d.errors.Report(diag.WrongType, node.Span(), "%s is no tolerance", quoted(node.Value)).WithHint("write 5%%, or an amount")
			return nil
		}
		return constant(percent(p), node.Span())
	}
	return d.operand(argument, node, at)
}

// deltaKey is what a counter is compared by.
const deltaKey = "delta"

// counters compiles {NAME: {delta: matcher}}.  Which names there are, only the device knows.
func (d *decoder) counters(argument *verb.Argument, node *syntax.Node, at place) *Value {
	hint := "counters: {port_rcv_errors: {delta: 0}}"
	if node = d.shaped(node, &at, syntax.Mapping, 1, hint, "counters is a mapping of names"); node == nil {
		return nil
	}
	checks := make(verb.CounterChecks, 0, len(node.Pairs))
	var parts []*Value
	var matchers [][]Condition
	for _, pair := range node.Pairs {
		matcher, good := d.delta(pair, at)
		if !good {
			return nil
		}
		checks, matchers = append(checks, verb.CounterCheck{Name: pair.Key.Value}), append(matchers, matcher)
		for i := range matcher {
			parts = append(parts, matcher[i].Operands...)
		}
	}
	return d.combined(node.Span(), parts, func(values []any) (any, error) {
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
func (d *decoder) delta(pair syntax.Pair, at place) ([]Condition, bool) {
	if pair.Value.Kind != syntax.Mapping || len(pair.Value.Pairs) != 1 || pair.Value.Get(deltaKey) == nil {
		d.errors.Report(diag.WrongShape, pair.Value.Span(), "a counter is compared by how much it has grown").
			WithHint("%s: {delta: 0}, or {delta: {le: 10}}", pair.Key.Value)
		return nil, false
	}
	conditions, good := d.conditions(&verb.Argument{Name: deltaKey, Type: verb.Integer}, pair.Value.Get(deltaKey), at)
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
