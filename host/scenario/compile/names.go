package compile

import (
	"fmt"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// faultName compiles the name of a fault, which a step before must have made.
func (c *compiler) faultName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := c.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	if name, made := c.isMade(verb.NewFault, node, value, at); !made {
		c.errors.Report(diag.UnknownFault, value.Span, "there is no fault %q here", name).
			WithHint("%s", hintOr(diag.DidYouMean(name, c.timeline.names(verb.NewFault, someRole)), "make it first: {fault: {..}, as: "+name+"}"))
		return nil
	}
	return value
}

// roleName compiles the name of a role.
func (c *compiler) roleName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := c.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	if name, known := value.Constant(); known && !c.abstract && !c.isParty(name.(string), value.Span) {
		return nil
	}
	return value
}

// roleList compiles a list of two roles.
func (c *compiler) roleList(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Sequence || len(node.Items) != 2 {
		c.errors.Report(diag.WrongShape, node.Span(), "%s wants a list of two roles", argument.Name).WithHint("[client, server]")
		return nil
	}
	parts := make([]*Value, 2)
	for i, item := range node.Items {
		if parts[i] = c.roleName(&verb.Argument{Name: argument.Name, Type: verb.Role}, item, at); parts[i] == nil {
			return nil
		}
	}
	return c.combined(node.Span(), parts, func(values []any) (any, error) {
		if values[0] == values[1] {
			return nil, &problem{diag.Conflict, "a link has two ends, and this is " + quoted(values[0].(string)) + " twice", ""}
		}
		return []string{values[0].(string), values[1].(string)}, nil
	})
}

// rights compiles a list of access rights; an empty one is no right at all.
func (c *compiler) rights(argument *verb.Argument, node *syntax.Node) *Value {
	if node.Kind != syntax.Sequence {
		c.errors.Report(diag.WrongShape, node.Span(), "%s is a list of rights", argument.Name).WithHint("[LOCAL_WRITE, REMOTE_READ]")
		return nil
	}
	rights := c.access(node.Items, argument.Type == verb.Rights)
	return constant(rights, node.Span())
}

// fields compiles a list of fields of completions, which must be known before the run.
func (c *compiler) fields(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Sequence {
		c.errors.Report(diag.WrongShape, node.Span(), "%s is a list of fields of completions", argument.Name).WithHint("[STANDARD, COMPLETION_TIMESTAMP]")
		return nil
	}
	item := &verb.Argument{Name: argument.Name, Type: verb.Word, Words: verb.FieldNames()}
	var fields rdmacore.WCFields
	good := true
	for _, each := range node.Items {
		name, known := c.knownIn(item, each, at.scope).(string)
		field, err := verb.ParseField(name)
		good = good && known && err == nil
		fields |= field
	}
	if !good {
		return nil // the words are the parser's own
	}
	return constant(fields, node.Span())
}

// conditionArgument compiles an expression that must be true, and keeps its text.
func (c *compiler) conditionArgument(argument *verb.Argument, node *syntax.Node, at place) *Value {
	text := bareCondition(node.Value)
	value := c.truth(argument.Name, node, at)
	if value == nil {
		return nil
	}
	if known, ok := value.Constant(); ok {
		return constant(conditionValue(text, value.Hex, known, at.scope.consts), value.Span)
	}
	return &Value{Span: value.Span, compute: func(env expression.Env) (any, error) {
		v, err := value.Get(env)
		if err != nil {
			return nil, err
		}
		return conditionValue(text, value.Hex, v, env), nil
	}}
}

// bareCondition is the expression of a condition, which may stand in $(..).
func bareCondition(text string) string {
	text = strings.TrimSpace(text)
	if expression.Contains(text) {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "$("), ")")
	}
	return text
}

// conditionValue is the value of a condition, with what it compares where it does not hold.
func conditionValue(text string, hex bool, value any, env expression.Env) verb.ConditionValue {
	condition := verb.ConditionValue{Holds: value == true, Text: text}
	if !condition.Holds {
		show := Show
		if hex {
			show = ShowHex
		}
		for _, operand := range expression.Operands(text, env) {
			condition.Operands = append(condition.Operands, operand.Text+" is "+show(operand.Value, verb.Text))
		}
	}
	return condition
}

// objectName compiles the name of an object of the step's role, which a step before must have made.
func (c *compiler) objectName(argument *verb.Argument, node *syntax.Node, at place) *Value {
	value := c.scalar(argument, node, at)
	if value == nil {
		return nil
	}
	kind, maker := argument.Type.Maker()
	name, made := c.isMade(kind, node, value, at)
	if !made {
		c.errors.Report(diag.UnknownObject, value.Span, "role %q has no %s %q here", at.role, withoutArticle(argument.Type.String()), name).
			WithHint("%s", hintOr(diag.DidYouMean(name, c.timeline.names(kind, at.role)), fmt.Sprintf("make it first: {role: %s, %s: {..}, as: %s}", at.role, maker, name)))
	}
	return value
}

func withoutArticle(text string) string {
	_, rest, _ := strings.Cut(text, " ")
	return rest
}
