package compile

import (
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

func (c *compiler) stepList(steps []*ast.Step, s *scope) []*Step {
	compiled := make([]*Step, 0, len(steps))
	for _, step := range steps {
		if c.steps++; c.steps > maxSteps {
			if c.steps == maxSteps+1 {
				c.errors.Report(diag.TooManySteps, step.Key.Span(), "the fragments expand to more than %d steps", maxSteps).
					WithHint("`repeat` does the same steps again without writing them down")
			}
			return compiled
		}
		compiled = append(compiled, c.step(step, s))
	}
	return compiled
}

func (c *compiler) step(step *ast.Step, s *scope) *Step {
	if group := c.countedRole(step, s); group != nil {
		return c.eachInstance(step, group, s)
	}
	at := place{scope: s}
	result := &Step{Span: step.Key.Span(), IgnoreLeftovers: step.Leftovers != nil}
	if step.If != nil {
		result.If = c.truth("if", step.If, at)
	}
	if step.If != nil {
		c.facts.conditional++
		defer func() { c.facts.conditional-- }()
	}
	inner := s
	if step.Action == ast.Repeat && step.As != nil && c.checkName(step.As) {
		inner = s.inner()
		inner.add(step.As.Value, expression.Integer, nil)
	}
	if step.Name != nil && step.Action != ast.ForEach {
		result.Name = c.scalar(&verb.Argument{Name: "name", Type: verb.Text}, step.Name, place{scope: inner})
		result.Label = label(step.Name.Value)
	}
	result.Timeout = c.duration("timeout", step.Timeout, at)
	if step.Action.OfSteps() {
		result.Within = c.duration("within", step.Within, at)
	}
	for _, tag := range step.Tags {
		compiled := Tag{Name: tag.Key.Value}
		if tag.Value != nil {
			compiled.Value = c.scalar(&verb.Argument{Name: tag.Key.Value, Type: verb.Text}, tag.Value, at)
		}
		result.Tags = append(result.Tags, compiled)
	}
	result.XFail = c.xfail(step.XFail, s)
	defer c.enter(result)()
	if step.Took != nil {
		result.Took = &Took{Min: c.duration("min", step.Took.Get("min"), at), Max: c.duration("max", step.Took.Get("max"), at), Span: step.Took.Span()}
	}
	switch step.Action {
	case ast.Block:
		result.Action = &Block{Steps: c.stepList(step.Do, s)}
	case ast.Repeat:
		defer c.enterLoop(result.Label)()
		result.Action = c.repeat(step, at, inner)
	case ast.Parallel:
		result.Action = c.parallel(step, s)
	case ast.ForEach:
		result.Action = c.forEach(step, at)
		result.Name = nil // each round has it
	case ast.Use:
		result.Action = c.use(step, at)
	case ast.GuestAction:
		result.Action = c.guestStep(step, at)
	case ast.Barrier:
		result.Action = c.barrier(step, at)
	case ast.Call:
		result.Action = c.call(step, at)
	}
	return result
}

// truth compiles a condition, whose expression may stand bare.
func (c *compiler) truth(name string, node *syntax.Node, at place) *Value {
	argument := &verb.Argument{Name: name, Type: verb.Boolean}
	if node.Kind != syntax.Scalar || expression.Contains(node.Value) {
		return c.scalar(argument, node, at)
	}
	return c.expression(argument, node, expression.Piece{Text: node.Value, Expression: true}, at)
}

// longestRepeat is the largest count that can be meant.
const longestRepeat = 1_000_000_000

func (c *compiler) repeat(step *ast.Step, at place, inner *scope) Action {
	r := &Repeat{Count: c.scalar(&verb.Argument{Name: "repeat", Type: verb.Integer, Max: longestRepeat}, step.Body, at)}
	if step.As != nil {
		r.Counter = step.As.Value
	}
	r.Steps = c.stepList(step.Do, inner)
	return r
}
