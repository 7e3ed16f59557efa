package plan

import (
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/shape"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

func (c *compiler) stepList(steps []*shape.Step, s *scope) []*Step {
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

func (c *compiler) step(step *shape.Step, s *scope) *Step {
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
	if step.Action == shape.Repeat && step.As != nil && c.checkName(step.As) {
		inner = s.inner()
		inner.add(step.As.Value, expression.Integer, nil)
	}
	if step.Name != nil && step.Action != shape.ForEach {
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
	if step.Took != nil {
		result.Took = &Took{Min: c.duration("min", step.Took.Get("min"), at), Max: c.duration("max", step.Took.Get("max"), at), Span: step.Took.Span()}
	}
	switch step.Action {
	case shape.Block:
		result.Action = &Block{Steps: c.stepList(step.Do, s)}
	case shape.Repeat:
		result.Action = c.repeat(step, at, inner)
	case shape.Parallel:
		result.Action = c.parallel(step, s)
	case shape.ForEach:
		result.Action = c.forEach(step, at)
		result.Name = nil // each round has it
	case shape.Use:
		result.Action = c.use(step, at)
	case shape.GuestAction:
		result.Action = c.guestStep(step, at)
	case shape.Barrier:
		result.Action = c.barrier(step, at)
	case shape.Call:
		result.Action = c.call(step, at)
	}
	return result
}

// label is a name without its expressions.
func label(name string) string {
	var text strings.Builder
	pieces, _ := expression.Scan(name)
	for _, piece := range pieces {
		if !piece.Expression {
			text.WriteString(piece.Text)
		}
	}
	return strings.Join(strings.Fields(text.String()), " ")
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

func (c *compiler) repeat(step *shape.Step, at place, inner *scope) Action {
	r := &Repeat{Count: c.scalar(&verb.Argument{Name: "repeat", Type: verb.Integer, Max: longestRepeat}, step.Body, at)}
	if step.As != nil {
		r.Counter = step.As.Value
	}
	r.Steps = c.stepList(step.Do, inner)
	return r
}

// use expands a fragment.
func (c *compiler) use(step *shape.Step, at place) Action {
	fragment, from := c.find(step.Body)
	if fragment == nil {
		return &Block{}
	}
	name := step.Body.Value
	if from != c.main {
		name = from.file.Root.Source.Name + ":" + fragment.Name.Value
	}
	if slices.Contains(c.using, name) {
		path := append(slices.Clone(c.using[slices.Index(c.using, name):]), name)
		c.errors.Report(diag.Recursion, step.Body.Span(), "the fragment %q uses itself: %s", name, strings.Join(path, " -> ")).
			WithHint("`repeat` does steps several times")
		return &Block{}
	}
	c.used[fragment] = true
	u := &Use{Fragment: step.Body.Value}
	inner := from.global.inner()
	c.bindParams(u, step, fragment, at, inner, from.global)
	c.using = append(c.using, name)
	before := c.current
	c.current = from
	u.Steps = c.stepList(fragment.Steps, inner)
	c.current = before
	c.using = c.using[:len(c.using)-1]
	return u
}

func (c *compiler) bindParams(u *Use, step *shape.Step, fragment *shape.Fragment, at place, inner, global *scope) {
	var known []string
	for _, param := range fragment.Params {
		known = append(known, param.Name.Value)
		c.bindParam(u, step, fragment, param, at, inner, global)
	}
	if step.With == nil {
		return
	}
	for _, pair := range step.With.Pairs {
		if !slices.Contains(known, pair.Key.Value) {
			hint := diag.DidYouMean(pair.Key.Value, known)
			if len(known) == 0 {
				hint = "it has none"
			}
			c.errors.Report(diag.UnknownParameter, pair.Key.Span(), "the fragment %q has no parameter %q", u.Fragment, pair.Key.Value).
				WithHint("%s", hintOr(hint, "there are: "+strings.Join(known, ", ")))
		}
	}
}

func (c *compiler) bindParam(u *Use, step *shape.Step, fragment *shape.Fragment, param *shape.Param, at place, inner, global *scope) {
	name := param.Name.Value
	node, scope := step.With.Get(name), at.scope
	if node == nil {
		node, scope = param.Default, global
	}
	if node == nil {
		c.errors.Report(diag.MissingParameter, step.Key.Span(), "the fragment %q needs the parameter %q", fragment.Name.Value, name).
			WithHint("with: {%s: ..}", name)
		inner.add(name, paramType(param.Type), nil)
		return
	}
	node, scope = scope.resolve(node)
	if param.Type == "map" {
		if node.Kind != syntax.Mapping && !c.abstract {
			c.errors.Report(diag.WrongShape, node.Span(), "the parameter %q is a mapping, and this is a %s", name, node.Kind)
		}
		inner.addNode(name, bound{node, scope})
		return
	}
	value := c.paramValue(c.paramArgument(param), node, place{scope: scope})
	if value == nil {
		inner.add(name, paramType(param.Type), nil)
		return
	}
	known, _ := value.Constant()
	if text, ok := known.(string); ok && param.Type == "role" && c.roles[text] == nil {
		c.unknownRole(text, value.Span)
		known = nil
	}
	inner.add(name, paramType(param.Type), known)
	u.With = append(u.With, Parameter{name, value})
}

func (c *compiler) unknownRole(name string, span diag.Span) {
	c.errors.Report(diag.UnknownRole, span, "there is no role %q", name).
		WithHint("%s", hintOr(diag.DidYouMean(name, sortedKeys(c.roles)), "there are: "+strings.Join(sortedKeys(c.roles), ", ")))
}

// roleMembers are what expressions find in every role, ROLE.address.
var roleMembers = []string{"name", "address", "device", "buffers"}

// checkName checks what `as` gives a name to.
func (c *compiler) checkName(node *syntax.Node) bool {
	switch {
	case node.Kind != syntax.Scalar || !isName(node.Value):
		c.errors.Report(diag.BadName, node.Span(), "%q cannot be a name", node.Value).
			WithHint("a name has letters, digits and _, does not begin with a digit, and is no word of expressions")
	case slices.Contains(roleMembers, node.Value):
		c.errors.Report(diag.BadName, node.Span(), "%q is a member of every role in expressions", node.Value).
			WithHint("choose another name")
	case c.roles[node.Value] != nil:
		c.errors.Report(diag.NameTaken, node.Span(), "%q is a role already", node.Value)
	case isParam(c.file, node.Value):
		c.errors.Report(diag.NameTaken, node.Span(), "%q is a parameter already", node.Value)
	default:
		return true
	}
	return false
}

func isParam(file *shape.File, name string) bool {
	return slices.ContainsFunc(file.Params, func(p *shape.Param) bool { return p.Name.Value == name })
}

func isName(text string) bool { return shape.IsName(text) }
