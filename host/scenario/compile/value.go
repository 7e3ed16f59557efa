package compile

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Value is an argument: known already, or computed when the step runs.
type Value struct {
	// Span is where the value is in the file.
	Span diag.Span
	// Hex is set if the scenario writes it in hex.
	Hex bool
	// show is the value of a name alone for readers; nil for other expressions.
	show     func(value any) string
	constant any
	// compute is nil for a constant.
	compute func(env expression.Env) (any, error)
}

// EvaluationError is a value that could not be computed when its step ran.
type EvaluationError struct {
	Span diag.Span
	Err  error
}

func (e *EvaluationError) Error() string { return e.Err.Error() }
func (e *EvaluationError) Unwrap() error { return e.Err }

// Hint is what to do about it; it may be empty.
func (e *EvaluationError) Hint() string {
	var known *problem
	if errors.As(e.Err, &known) {
		return known.Hint
	}
	return ""
}

func constant(value any, span diag.Span) *Value { return &Value{Span: span, constant: value} }

// Constant returns the value when it is known before the run.
func (v *Value) Constant() (any, bool) { return v.constant, v.compute == nil }

// Get computes the value.  Its errors are EvaluationErrors.
func (v *Value) Get(env expression.Env) (any, error) {
	if v.compute == nil {
		return v.constant, nil
	}
	value, err := v.compute(env)
	if err != nil {
		if located, ok := err.(*EvaluationError); ok {
			return nil, located
		}
		return nil, &EvaluationError{v.Span, err}
	}
	return value, nil
}

// textOf is how a value looks inside of text.
func textOf(value any) string {
	switch v := value.(type) {
	case string:
		return v
	case []byte:
		return fmt.Sprintf("%x", v)
	case time.Duration:
		return quantity.Time(v)
	default:
		return fmt.Sprint(v)
	}
}

// message is a value in a text for readers: a number in hex, and a parameter with its unit, as the scenario writes
// them.  Programs and guests read the plain numbers of textOf.
func (v *Value) message(value any) string {
	switch {
	case v.Hex:
		return ShowHex(value, verb.Any)
	case v.show != nil:
		return v.show(value)
	}
	return textOf(value)
}

// place is where a value is: its scope, and the role of its step.
type place struct {
	scope *scope
	// role is "" for a step without one, and for a role that is known only in the run.
	role string
	// anyRole is true for the latter.
	anyRole bool
}

// in is the same place with another scope.
func (p place) in(s *scope) place {
	p.scope = s
	return p
}

// scalar compiles a scalar that an argument of a simple type takes.  It returns nil after reporting
// what is wrong.
func (d *decoder) scalar(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if node.Kind != syntax.Scalar {
		return d.refuse(
			diag.WrongShape, node.Span(), "", "%s wants %s, and this is a %s", argument.Name, argument.Type, node.Kind,
		)
	}
	if !expression.Contains(node.Value) {
		return d.literal(argument, node)
	}
	pieces, unterminated := expression.Scan(node.Value)
	if unterminated >= 0 {
		return d.refuse(
			diag.Unterminated, node.Locate(unterminated, unterminated+2), "a ) is missing",
			"this expression does not end",
		)
	}
	if len(pieces) == 1 && pieces[0].Expression {
		return d.expression(argument, node, pieces[0], at)
	}
	return d.template(argument, node, pieces, at)
}

func (d *decoder) literal(argument *verb.Argument, node *syntax.Node) *Value {
	if node.IsNull() && argument.Type != verb.Text {
		return d.refuse(
			diag.WrongType, node.Span(), "", "%s wants %s, and there is nothing", argument.Name, argument.Type,
		)
	}
	text := node
	if strings.Contains(node.Value, "$$(") {
		unescaped := *node
		unescaped.Value = strings.ReplaceAll(node.Value, "$$(", "$(")
		text = &unescaped
	}
	value, bad := d.parse(argument, text)
	if bad != nil {
		return d.report(bad, node.Span())
	}
	return &Value{Span: node.Span(), Hex: hexWritten(node.Value), constant: value}
}

// text compiles a text of any kind.
func (d *decoder) text(name string, node *syntax.Node, at place) *Value {
	return d.scalar(&verb.Argument{Name: name, Type: verb.Text}, node, at)
}

// onlyExpression is the expression of a scalar that is nothing else.
func onlyExpression(node *syntax.Node) (expression.Piece, bool) {
	if node.Kind != syntax.Scalar || !expression.Contains(node.Value) {
		return expression.Piece{}, false
	}
	pieces, unterminated := expression.Scan(node.Value)
	if unterminated >= 0 || len(pieces) != 1 || !pieces[0].Expression {
		return expression.Piece{}, false
	}
	return pieces[0], true
}

// expression compiles a scalar that is one $(...).
func (d *decoder) expression(argument *verb.Argument, node *syntax.Node, piece expression.Piece, at place) *Value {
	raw, kind := d.compile(node, piece, node.Locate(piece.Offset, piece.Offset+len(piece.Text)), at)
	if raw == nil {
		return nil
	}
	row := &d.types[argument.Type]
	if kind != "" && row.kinds != nil && !slices.Contains(row.kinds, kind) { // "" is known only while running
		return d.refuse(
			diag.ExpressionType, raw.Span, "", "%s wants %s, and this is %s", argument.Name,
			cmp.Or(row.wants, argument.Type.String()), kind,
		)
	}
	return d.converted(raw, func(v any) (any, error) {
		if argument.Message {
			v = raw.message(v)
		}
		return orError(d.convert(argument, v))
	})
}

// orError is a value, or the problem with it as an error.
func orError(value any, bad *problem) (any, error) {
	if bad != nil {
		return nil, bad
	}
	return value, nil
}

// converted makes a value of another by a conversion, now if it can; nil stays nil.
func (d *decoder) converted(value *Value, convert func(any) (any, error)) *Value {
	if value == nil {
		return nil
	}
	made := &Value{Span: value.Span, Hex: value.Hex}
	known, ok := value.Constant()
	if !ok {
		made.compute = func(env expression.Env) (any, error) {
			computed, err := value.Get(env)
			if err != nil {
				return nil, err
			}
			return convert(computed)
		}
		return made
	}
	var err error
	if made.constant, err = convert(known); err != nil {
		return d.reportValue(err, value.Span)
	}
	return made
}

// combined makes one value of several, now if all are known.  build must not keep the slice.
func (d *decoder) combined(span diag.Span, parts []*Value, build func([]any) (any, error)) *Value {
	compute := func(env expression.Env) (any, error) {
		values := make([]any, len(parts))
		for i, part := range parts {
			var err error
			if values[i], err = part.Get(env); err != nil {
				return nil, err
			}
		}
		return build(values)
	}
	if slices.ContainsFunc(parts, func(part *Value) bool { return part.compute != nil }) {
		return &Value{Span: span, compute: compute}
	}
	value, err := compute(nil)
	if err != nil {
		return d.reportValue(err, span)
	}
	return constant(value, span)
}

// list compiles the items of a list; build makes one value of them.
func (d *decoder) list(node *syntax.Node, item func(*syntax.Node) *Value, build func([]any) (any, error)) *Value {
	parts := make([]*Value, len(node.Items))
	for i, each := range node.Items {
		if parts[i] = item(each); parts[i] == nil {
			return nil
		}
	}
	return d.combined(node.Span(), parts, build)
}

// shaped follows a node to its target. The target must be of a kind and, unless least is 0, have that many items or
// keys. Otherwise shaped reports what is wanted and returns nil.
func (d *decoder) shaped(
	node *syntax.Node, at *place, kind syntax.Kind, least int, hint, format string, args ...any,
) *syntax.Node {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != kind || len(node.Items)+len(node.Pairs) < least {
		d.refuse(diag.WrongShape, node.Span(), hint, format, args...)
		return nil
	}
	return node
}

// refuse reports what is wrong with a value, and is the value that there is then: none.
func (d *decoder) refuse(code diag.Code, span diag.Span, hint, format string, args ...any) *Value {
	d.errors.Report(code, span, format, args...).WithHint("%s", hint)
	return nil
}

// report is refuse for a problem that has no position yet.
func (d *decoder) report(bad *problem, span diag.Span) *Value {
	d.errors.Add(&diag.Diagnostic{Problem: *bad, Span: span})
	return nil
}

// reportValue is report for an error of a constant.
func (d *decoder) reportValue(err error, span diag.Span) *Value {
	if located, ok := err.(*EvaluationError); ok {
		err, span = located.Err, located.Span
	}
	if bad, ok := err.(*problem); ok {
		return d.report(bad, span)
	}
	return d.refuse(diag.Evaluation, span, "", "%s", err)
}

// Limits keep a file from taking more than a moment. Each expression of a text is looked up in it, and each is parsed
// by calls that nest as it does.
const (
	maxPieces     = 2000     // of a text, expressions and what is between them
	maxExpression = 16 << 10 // bytes
)

// template compiles text with expressions inside.
func (d *decoder) template(argument *verb.Argument, node *syntax.Node, pieces []expression.Piece, at place) *Value {
	if !d.types[argument.Type].text {
		return d.refuse(
			diag.WrongType, node.Span(), "calculate inside one $(...)",
			"%s wants %s, and this is text with an expression inside", argument.Name, argument.Type,
		)
	}
	if len(pieces) > maxPieces {
		return d.refuse(diag.OutOfRange, node.Span(), "", "a text with more than %d expressions", maxPieces/2)
	}
	parts := make([]*Value, 0, len(pieces))
	whole, places := node.Span(), node.Locator()
	for _, piece := range pieces {
		if !piece.Expression {
			parts = append(parts, constant(piece.Text, whole))
			continue
		}
		part, _ := d.compile(node, piece, places.Locate(piece.Offset, piece.Offset+len(piece.Text)), at)
		if part == nil {
			return nil
		}
		parts = append(parts, part)
	}
	return d.combined(whole, parts, func(values []any) (any, error) {
		var text strings.Builder
		for i, value := range values {
			if argument.Message {
				text.WriteString(parts[i].message(value))
				continue
			}
			text.WriteString(textOf(value))
		}
		return orError(text.String(), check(argument, text.String()))
	})
}

// Recount is the key in an environment of a func() that updates the counters of its roles. No expression can have that
// name. The function is called before an expression that mentions counters.
const Recount = "recount counters"

// Hidden is the key in an environment of a map[string]any. No expression can have that name. The map has the values of
// names that parameters of fragments and the like hide, nil for a name that has no value outside.
const Hidden = "hidden names"

// ofFile is a value of a role that a step evaluates. It sees the names of the file, and not those that hide them at
// the step. The number of an instance is the step's.
func (v *Value) ofFile() *Value {
	if v == nil || v.compute == nil {
		return v
	}
	whole := *v
	whole.compute = func(env expression.Env) (any, error) {
		hidden, _ := env[Hidden].(map[string]any)
		if len(hidden) > 0 {
			env = maps.Clone(env)
			for name, value := range hidden {
				switch {
				case name == indexName:
				case value == nil:
					delete(env, name)
				default:
					env[name] = value
				}
			}
		}
		return v.compute(env)
	}
	return &whole
}

// compile compiles one expression, which is at span, and returns the kind of its result.
func (d *decoder) compile(node *syntax.Node, piece expression.Piece, span diag.Span, at place) (*Value, string) {
	if len(piece.Text) > maxExpression {
		d.errors.Report(diag.ExpressionSyntax, node.Span(), "an expression of more than %d bytes", maxExpression)
		return nil, ""
	}
	if strings.TrimSpace(piece.Text) == "" {
		d.errors.Report(diag.ExpressionSyntax, node.Locate(piece.Offset-2, piece.Offset+1), "an empty expression")
		return nil, ""
	}
	words := expression.Words(piece.Text)
	names, known := d.visible(at, words)
	program, bad := expression.Compile(piece.Text, names, known)
	if bad != nil && (bad.Code == diag.UndefinedName || bad.Code == diag.UndefinedMember) {
		// Once more with all names, to suggest one.
		names, known = d.visible(at, d.everything(at))
		_, bad = expression.Compile(piece.Text, names, known)
	}
	if bad != nil {
		for word := range words {
			at.scope.mention(word) // if only by mistake
		}
		d.reportExpression(bad, node.Locate(piece.Offset+bad.From, piece.Offset+bad.To), piece.Text, at)
		return nil, ""
	}
	value := &Value{Span: span, Hex: program.Hex(), show: at.scope.find(strings.TrimSpace(piece.Text)).show}
	for _, word := range program.Names() {
		at.scope.mention(word)
		value.Hex = value.Hex || at.scope.find(word).hex
	}
	if known, is := program.Constant(); is {
		value.constant = known
	} else {
		value.compute = program.Run
	}
	if words["counters"] && value.compute != nil {
		value.compute = func(env expression.Env) (any, error) {
			if recount, counts := env[Recount].(func()); counts {
				recount()
			}
			return program.Run(env)
		}
	}
	return value, program.Returns()
}

func (d *decoder) reportExpression(bad *expression.Error, span diag.Span, source string, at place) {
	if bad.Code == diag.UndefinedName {
		name := source[bad.From:bad.To]
		if roles := d.ambiguous(at, name); roles != nil {
			d.errors.Report(diag.AmbiguousName, span, "%q is a name in several roles", name).
				WithHint("name the role: %s.%s", roles[0], name)
			return
		}
		if d.abstract && !strings.HasPrefix(bad.Hint, "did you mean") {
			return // a step around the use of the fragment may make it
		}
		if other := d.caseWith(name); other != nil {
			bad.Hint = fmt.Sprintf(
				"the matrix of case %s has it; what names it must be in that case", quoted(other.Name.Value),
			)
		}
	}
	d.report(&bad.Problem, span)
}
