package compile

import (
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// place is where a value stands: its scope, and the role of its step.
type place struct {
	scope *scope
	// role is "" for a step without one, and for a role that only the run will tell.
	role string
	// anyRole tells the latter.
	anyRole bool
}

// in is the same place with another scope.
func (p place) in(s *scope) place {
	p.scope = s
	return p
}

// scalar compiles a scalar that an argument of a simple type takes.  It returns nil after reporting
// what is wrong.
func (c *compiler) scalar(argument *verb.Argument, node *syntax.Node, at place) *Value {
	if node.Kind != syntax.Scalar {
		c.errors.Report(diag.WrongShape, node.Span(), "%s wants %s, and this is a %s", argument.Name, argument.Type, node.Kind)
		return nil
	}
	if !expression.Contains(node.Value) {
		return c.literal(argument, node)
	}
	pieces, unterminated := expression.Scan(node.Value)
	if unterminated >= 0 {
		c.errors.Report(diag.Unterminated, node.Locate(unterminated, unterminated+2), "this expression does not end").
			WithHint("a ) is missing")
		return nil
	}
	if len(pieces) == 1 && pieces[0].Expression {
		return c.expression(argument, node, pieces[0], at)
	}
	return c.template(argument, node, pieces, at)
}

func (c *compiler) literal(argument *verb.Argument, node *syntax.Node) *Value {
	text := *node
	if node.IsNull() && argument.Type != verb.Text {
		c.errors.Report(diag.WrongType, node.Span(), "%s wants %s, and there is nothing", argument.Name, argument.Type)
		return nil
	}
	text.Value = strings.ReplaceAll(node.Value, "$$(", "$(")
	value, bad := literal(argument, &text)
	if bad != nil {
		c.report(bad, node.Span())
		return nil
	}
	written := constant(value, node.Span())
	written.Hex = hexWritten(node.Value)
	return written
}

// expression compiles a scalar that is one $(...).
func (c *compiler) expression(argument *verb.Argument, node *syntax.Node, piece expression.Piece, at place) *Value {
	raw, kind := c.compile(node, piece, node.Locate(piece.Offset, piece.Offset+len(piece.Text)), at)
	if raw == nil {
		return nil
	}
	if !accepts(argument, kind) {
		c.errors.Report(diag.ExpressionType, raw.Span, "%s wants %s, and this is %s", argument.Name, argument.Type, kind)
		return nil
	}
	value, err := raw.then(func(v any) (any, error) {
		if argument.Message && raw.Hex {
			return ShowHex(v, verb.Text), nil
		}
		converted, bad := fromExpression(argument, v)
		if bad != nil {
			return nil, bad
		}
		return converted, nil
	})
	if err != nil {
		c.reportValue(err, raw.Span)
		return nil
	}
	return value
}

// reportValue reports an error of a constant conversion.
func (c *compiler) reportValue(err error, span diag.Span) {
	if located, ok := err.(*EvaluationError); ok {
		err, span = located.Err, located.Span
	}
	if bad, ok := err.(*problem); ok {
		c.report(bad, span)
		return
	}
	c.errors.Report(diag.Evaluation, span, "%s", err)
}

// Limits keep a file from taking more than a moment: each expression of a text is looked up in it, and each
// is parsed by calls that nest as it does.
const (
	maxPieces     = 2000     // of a text, expressions and what stands between them
	maxExpression = 16 << 10 // bytes
)

// template compiles text with expressions inside.
func (c *compiler) template(argument *verb.Argument, node *syntax.Node, pieces []expression.Piece, at place) *Value {
	switch argument.Type {
	case verb.Integer, verb.Unsigned, verb.Size, verb.Duration, verb.Boolean, verb.Status, verb.Fraction, verb.Rate, verb.Sizes:
		c.errors.Report(diag.WrongType, node.Span(), "%s wants %s, and this is text with an expression inside", argument.Name, argument.Type).
			WithHint("calculate inside one $(...)")
		return nil
	}
	if len(pieces) > maxPieces {
		c.errors.Report(diag.OutOfRange, node.Span(), "a text with more than %d expressions", maxPieces/2)
		return nil
	}
	parts := make([]*Value, 0, len(pieces))
	whole, places := node.Span(), node.Locator()
	for _, piece := range pieces {
		if !piece.Expression {
			parts = append(parts, constant(piece.Text, whole))
			continue
		}
		part, _ := c.compile(node, piece, places.Locate(piece.Offset, piece.Offset+len(piece.Text)), at)
		if part == nil {
			return nil
		}
		parts = append(parts, part)
	}
	value, err := combine(whole, parts, func(values []any) (any, error) {
		var text strings.Builder
		for i, value := range values {
			if argument.Message && parts[i].Hex {
				text.WriteString(ShowHex(value, verb.Any))
				continue
			}
			text.WriteString(textOf(value))
		}
		if bad := check(argument, text.String()); bad != nil {
			return nil, bad
		}
		return text.String(), nil
	})
	if err != nil {
		c.reportValue(err, whole)
		return nil
	}
	return value
}

// compile compiles one expression, which stands at span, and tells the kind of its result.
func (c *compiler) compile(node *syntax.Node, piece expression.Piece, span diag.Span, at place) (*Value, string) {
	if len(piece.Text) > maxExpression {
		c.errors.Report(diag.ExpressionSyntax, node.Span(), "an expression of more than %d bytes", maxExpression)
		return nil, ""
	}
	if strings.TrimSpace(piece.Text) == "" {
		c.errors.Report(diag.ExpressionSyntax, node.Locate(piece.Offset-2, piece.Offset+1), "an empty expression")
		return nil, ""
	}
	program, bad := expression.Compile(piece.Text, c.visible(at, expression.Words(piece.Text)), at.scope.consts)
	if bad != nil && (bad.Kind == expression.UndefinedName || bad.Kind == expression.UndefinedMember) {
		// Once more with all names, to suggest one.
		_, bad = expression.Compile(piece.Text, c.visible(at, c.everything(at)), at.scope.consts)
	}
	if bad != nil {
		for word := range expression.Words(piece.Text) {
			at.scope.mention(word) // if only by mistake
		}
		c.reportExpression(bad, node.Locate(piece.Offset+bad.From, piece.Offset+bad.To), piece.Text)
		return nil, ""
	}
	for _, name := range program.Names() {
		at.scope.mention(name)
	}
	value := &Value{Span: span, Hex: program.Hex() || slices.ContainsFunc(program.Names(), func(name string) bool { return at.scope.hex[name] })}
	if known, is := program.Constant(); is {
		value.constant = known
	} else {
		value.compute = program.Run
	}
	return value, program.Returns()
}

func (c *compiler) reportExpression(bad *expression.Error, span diag.Span, source string) {
	if bad.Kind == expression.UndefinedName {
		name := source[bad.From:bad.To]
		if roles := c.ambiguous(name); roles != nil {
			c.errors.Report(diag.AmbiguousName, span, "%q is a name in several roles", name).
				WithHint("say whose: %s.%s", roles[0], name)
			return
		}
		if c.abstract && !strings.HasPrefix(bad.Hint, "did you mean") {
			return // a step around the use of the fragment may make it
		}
		if other := c.caseWith(name); other != nil {
			bad.Hint = fmt.Sprintf("the matrix of case %s has it; what names it must stand in that case", quoted(other.Name.Value))
		}
	}
	c.errors.Report(bad.Kind, span, "%s", bad.Message).WithHint("%s", bad.Hint)
}
