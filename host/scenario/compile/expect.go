package compile

import (
	"slices"
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
func (c *compiler) expectsNothing(step *ast.Step, at place) bool {
	if step.Expect == nil || step.Expect.Get(None) == nil {
		return false
	}
	key := step.Expect.Key(None)
	value := c.knownIn(&verb.Argument{Name: None, Type: verb.Boolean}, step.Expect.Get(None), at.scope)
	within := step.Within != nil || step.Body.Get("within") != nil
	switch {
	case !step.Verb.Waits:
		c.errors.Report(diag.UnknownField, key.Span(), "%s waits for nothing, so nothing cannot be expected of it", step.Verb.Name)
	case len(step.Expect.Pairs) > 1:
		c.errors.Report(diag.Conflict, key.Span(), "when nothing comes there is nothing else to expect")
	case value == true && !within:
		c.errors.Report(diag.MissingKey, key.Span(), "how long must nothing come? \"within\" is missing").WithHint("within: 200ms")
	case value == true && step.As != nil:
		c.errors.Report(diag.NothingToName, step.Node.Key("as").Span(), "when nothing comes there is nothing to name")
	case value == false:
		c.errors.Report(diag.OutOfRange, key.Span(), "none is true, or left out")
	}
	return true
}

// expectsAnything reads `expect: any`: not even the defaults hold.
func (c *compiler) expectsAnything(step *ast.Step, v *verb.Verb) bool {
	if step.AnyResult && len(v.Results) == 0 && !v.CanFail() {
		c.errors.Report(diag.UnknownField, step.Node.Key("expect").Span(), "%s has no result to expect something of", v.Name)
	}
	return step.AnyResult
}

// expectations compiles `expect`, and adds the defaults of the fields that it does not name.
func (c *compiler) expectations(step *ast.Step, v *verb.Verb, layout verb.FieldLayout, at place) []Expectation {
	var list []Expectation
	named := make(map[string]bool)
	if step.Expect != nil {
		node, scope := at.scope.resolve(step.Expect)
		for _, pair := range node.Pairs {
			named[pair.Key.Value] = true
			if e, ok := c.expectation(pair, v, layout, at.in(scope)); ok {
				list = append(list, e)
			}
		}
	}
	if named[Errno] {
		c.ofFailure(list, v)
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
func (c *compiler) ofFailure(list []Expectation, v *verb.Verb) {
	for i := range list {
		e := &list[i]
		if e.Field == Errno || e.Index >= 0 && v.Results[e.Index].OfFailure {
			continue
		}
		c.errors.Report(diag.Conflict, e.Span, "a call that fails with errno has no %s", e.Field).
			WithHint("a step that expects success looks at its results; one that expects errno, at what failed")
	}
}

func (c *compiler) expectation(pair syntax.Pair, v *verb.Verb, layout verb.FieldLayout, at place) (Expectation, bool) {
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
		c.unknownField(pair.Key, v, layout)
		return e, false
	}
	e.Type = argument.Type
	var good bool
	e.Conditions, good = c.conditions(argument, pair.Value, at)
	for _, condition := range e.Conditions {
		e.Hex = e.Hex || slices.ContainsFunc(condition.Operands, func(v *Value) bool { return v != nil && v.Hex })
	}
	return e, good
}

func (c *compiler) unknownField(key *syntax.Node, v *verb.Verb, layout verb.FieldLayout) {
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
		c.errors.Report(diag.UnknownField, key.Span(), "%s has no result to expect something of", v.Name)
		return
	}
	c.errors.Report(diag.UnknownField, key.Span(), "the result of %s has no field %q", v.Name, key.Value).
		WithHint("%s", hintOr(diag.DidYouMean(key.Value, fields), diag.ThereAre(fields)))
}

// duration compiles a duration of a step or a file; nil for none.
func (c *compiler) duration(name string, node *syntax.Node, at place) *Value {
	if node == nil {
		return nil
	}
	return c.scalar(&verb.Argument{Name: name, Type: verb.Duration, Min: 0, Max: int64(24 * 365 * time.Hour)}, node, at)
}
