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
	// Type prints values.
	Type       verb.Type
	Conditions []Condition
	// Hex means that integers are printed in hex.
	Hex bool
	// Default is set for what the verb expects by itself, without a key in the file.
	Default bool
}

// Errno is the pseudo field for the errno of a call that is expected to fail.
const Errno = "errno"

// None is the pseudo field for what must not come.
const None = "none"

// expectsNothing reads `expect: {none: true}`, which must be the only expectation; the step sets how long.
func (d *decoder) expectsNothing(step *ast.Step, at place) bool {
	if step.Expect == nil || step.Expect.Get(None) == nil {
		return false
	}
	key := step.Expect.Key(None)
	value := d.known(&verb.Argument{Name: None, Type: verb.Boolean}, step.Expect.Get(None), at.scope)
	within := step.Within != nil || step.Body.Get("within") != nil
	switch {
	case !step.Verb.Waits:
		d.errors.Report(
			diag.UnknownField, key.Span(), "%s waits for nothing, so nothing cannot be expected of it", step.Verb.Name,
		)
	case len(step.Expect.Pairs) > 1:
		d.errors.Report(diag.Conflict, key.Span(), "when nothing comes there is nothing else to expect")
	case value == true && !within:
		d.errors.Report(diag.MissingKey, key.Span(), "how long must nothing come? \"within\" is missing").WithHint(
			"within: 200ms",
		)
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
		d.errors.Report(
			diag.UnknownField, step.Node.Key("expect").Span(), "%s has no result to expect something of", v.Name,
		)
	}
	return step.AnyResult
}

// expectations compiles `expect`, and adds the defaults of the fields that it does not name. more are the results that
// the arguments of the step name.
func (d *decoder) expectations(step *ast.Step, v *verb.Verb, more []verb.Result, at place) []Expectation {
	var list []Expectation
	named := make(map[string]bool)
	if step.Expect != nil {
		node, scope := at.scope.resolve(step.Expect)
		for _, pair := range node.Pairs {
			named[pair.Key.Value] = true
			if e, ok := d.expectation(pair, v, more, at.in(scope)); ok {
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
				Conditions: equals(constant(r.Default, step.Key.Span()), diag.Span{}),
			})
		}
	}
	return list
}

// ofFailure rejects fields, next to errno, that a failed call does not have.
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

func (d *decoder) expectation(pair syntax.Pair, v *verb.Verb, more []verb.Result, at place) (Expectation, bool) {
	e := Expectation{Field: pair.Key.Value, Index: v.Result(pair.Key.Value), Span: pair.Key.Span()}
	var argument *verb.Argument
	switch {
	case e.Index >= 0:
		result := &v.Results[e.Index]
		argument, e.Hex = &verb.Argument{Name: result.Name, Type: result.Type, Words: result.Words}, result.Hex
	case e.Field == Errno && v.CanFail():
		argument = errnoArgument()
	default:
		if i := slices.IndexFunc(more, func(r verb.Result) bool { return r.Name == e.Field }); i >= 0 {
			argument = &verb.Argument{Name: e.Field, Type: more[i].Type}
		}
	}
	if argument == nil {
		d.unknownField(pair.Key, v, more)
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

func (d *decoder) unknownField(key *syntax.Node, v *verb.Verb, more []verb.Result) {
	fields := namesOf(slices.Concat(v.Results, more), func(r *verb.Result) string { return r.Name })
	if v.CanFail() {
		fields = append(fields, Errno)
	}
	if len(fields) == 0 {
		d.errors.Report(diag.UnknownField, key.Span(), "%s has no result to expect something of", v.Name)
		return
	}
	d.errors.Report(diag.UnknownField, key.Span(), "the result of %s has no field %q", v.Name, key.Value).WithOneOf(
		key.Value, fields,
	)
}

// maxDuration keeps a typing mistake from making a limit endless.
const maxDuration = int64(24 * 365 * time.Hour)

// duration compiles a duration of a step; nil for none.
func (d *decoder) duration(name string, node *syntax.Node, at place) *Value {
	if node == nil {
		return nil
	}
	return d.scalar(&verb.Argument{Name: name, Type: verb.Duration, Max: maxDuration}, node, at)
}

// deltaKey is what a counter is compared by.
const deltaKey = "delta"

// counters compiles {NAME: {delta: matcher}}.  Only the device has the list of names.
func (d *decoder) counters(argument *verb.Argument, node *syntax.Node, at place) *Value {
	hint := "counters: {port_rcv_errors: {delta: 0}}"
	if node = d.shaped(node, &at, syntax.Mapping, 1, hint, "counters is a mapping of names"); node == nil {
		return nil
	}
	var checks []Expectation
	var parts []*Value
	for _, pair := range node.Pairs {
		delta := pair.Value.Get(deltaKey)
		if pair.Value.Kind != syntax.Mapping || len(pair.Value.Pairs) != 1 || delta == nil {
			return d.refuse(
				diag.WrongShape, pair.Value.Span(), pair.Key.Value+": {delta: 0}, or {delta: {le: 10}}",
				"a counter is compared by how much it has grown",
			)
		}
		conditions, good := d.conditions(&verb.Argument{Name: deltaKey, Type: verb.Integer}, delta, at)
		if !good {
			return nil
		}
		checks = append(checks, Expectation{
			Field: pair.Key.Value, Type: verb.Integer, Conditions: conditions, Span: pair.Key.Span(),
		})
		for i := range conditions {
			parts = append(parts, conditions[i].Operands...)
		}
	}
	return d.combined(node.Span(), parts, func(values []any) (any, error) {
		bound := make(verb.CounterChecks, len(checks))
		for i, check := range checks {
			check.Conditions = slices.Clone(check.Conditions)
			for j, condition := range check.Conditions {
				known := make([]*Value, len(condition.Operands))
				for k := range known {
					known[k], values = constant(values[0], condition.Span), values[1:]
				}
				check.Conditions[j].Operands = known
			}
			bound[i] = verb.CounterCheck{Name: check.Field, Span: check.Span, Check: func(delta int) (bool, string) {
				ok, want, _ := check.Check(nil, delta) // its operands are constants, which are always there
				return ok, want
			}}
		}
		return bound, nil
	})
}
