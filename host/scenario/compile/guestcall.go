package compile

import (
	"fmt"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// guestCall compiles the call of a guest's function, and holds it against the module.
func (c *compiler) guestCall(step *ast.Step, at place) Action {
	g := &GuestCall{Within: c.duration("within", step.Within, at)}
	g.Role, at.role = c.stepRole(step, at, true, false)
	at.anyRole = g.Role != nil && at.role == ""
	result := verb.GuestCallResult()
	g.Expect = c.expectations(step, result, nil, at)
	if step.Function == nil {
		return g
	}
	name := c.knownIn(&verb.Argument{Name: "function", Type: verb.Text}, step.Function, at.scope)
	if name == nil {
		return g
	}
	g.Function = name.(string)
	known := c.signature(g, step, at)
	g.Arguments = c.integers(g, step, known, at)
	if known && g.Signature.Results == "" && (step.Expect != nil || step.AnyResult || step.As != nil) {
		c.errors.Report(diag.GuestFunction, step.Function.Span(), "the function %q returns nothing", g.Function)
	}
	if step.As != nil {
		if g.As = c.asName(step.As, at); g.As.Word != "" {
			c.addResult(step.As, at, g.As, resultType(result, nil))
		}
	}
	return g
}

// signature finds the function in the role's module; false when the module is not known, or lacks it.
func (c *compiler) signature(g *GuestCall, step *ast.Step, at place) bool {
	r := c.role(at.role)
	if r == nil || r.functions == nil {
		return false
	}
	signature, found := r.functions[g.Function]
	if !found {
		names := sortedKeys(r.functions)
		c.errors.Report(diag.GuestFunction, step.Function.Span(), "the guest of role %q exports no function %q", r.name, g.Function).
			WithHint("%s", hintOr(diag.DidYouMean(g.Function, names), diag.ThereAre(names)))
		return false
	}
	if strings.Trim(signature.Params+signature.Results, "iI") != "" || len(signature.Results) > 1 {
		c.errors.Report(diag.GuestFunction, step.Function.Span(), "a step cannot call %q, whose type is %s", g.Function, signature).
			WithHint("a step gives integers, i32 and i64, and takes one at most")
		return false
	}
	g.Signature = signature
	return true
}

// integers compiles the arguments of a call.
func (c *compiler) integers(g *GuestCall, step *ast.Step, known bool, at place) []*Value {
	var nodes []*syntax.Node
	if step.Args != nil {
		if step.Args.Kind != syntax.Sequence {
			c.errors.Report(diag.WrongShape, step.Args.Span(), "args is a list of integers")
			return nil
		}
		nodes = step.Args.Items
	}
	if known && len(nodes) != len(g.Signature.Params) {
		span := step.Function.Span()
		if step.Args != nil {
			span = step.Args.Span()
		}
		c.errors.Report(diag.GuestFunction, span, "the function %q takes %d arguments, and these are %d", g.Function, len(g.Signature.Params), len(nodes)).
			WithHint("its type is %s", g.Signature)
		return nil
	}
	values := make([]*Value, 0, len(nodes))
	for i, node := range nodes {
		argument := &verb.Argument{Name: fmt.Sprintf("argument %d", i+1), Type: verb.Integer}
		if known && g.Signature.Params[i] == 'i' {
			argument.Min, argument.Max = -1<<31, 1<<32-1
		}
		if value := c.scalar(argument, node, at); value != nil {
			values = append(values, value)
		}
	}
	return values
}

// String is the signature as wasm tools write it.
func (s Signature) String() string {
	spell := func(letters string) string {
		words := make([]string, len(letters))
		for i := range letters {
			words[i] = map[byte]string{'i': "i32", 'I': "i64", 'f': "f32", 'F': "f64"}[letters[i]]
		}
		return "(" + strings.Join(words, " ") + ")"
	}
	return spell(s.Params) + " -> " + spell(s.Results)
}
