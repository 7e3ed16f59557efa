package compile

import (
	"slices"
	"strings"

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

// stepRole compiles `role` and checks that it is of the right kind; name is "" when only the run will
// tell.
func (c *compiler) stepRole(step *ast.Step, at place, guest, optional bool) (value *Value, name string) {
	if step.Role == nil {
		if !optional {
			roles := sortedKeys(c.roles)
			hint := "role: " + strings.Join(roles, " or ")
			if len(hint) > 200 {
				hint = diag.ThereAre(roles)
			}
			if len(c.roles) == 0 {
				hint = "the file has no roles; they stand under the key \"roles\""
			}
			c.errors.Report(diag.MissingRole, step.Key.Span(), "%s needs a role: who does it?", step.Key.Value).WithHint("%s", hint)
		}
		return nil, ""
	}
	value = c.scalar(&verb.Argument{Name: "role", Type: verb.Text}, step.Role, at)
	if value == nil {
		return nil, ""
	}
	known, ok := value.Constant()
	if !ok {
		if group := c.groupOf(step.Role); group != nil {
			c.noteBranches(group.name)
		}
		return value, ""
	}
	name = known.(string)
	r := c.role(name)
	c.noteBranches(name)
	if r != nil && r.group != "" {
		c.noteBranches(r.group)
	}
	switch {
	case r == nil:
		c.unknownRole(name, value.Span)
		return nil, ""
	case r.guest && !guest && !optional:
		c.errors.Report(diag.WrongRole, value.Span, "%q is a guest, which calls for itself", name).
			WithHint("steps can start, run, wait for and stop it: guest: start")
		return nil, ""
	case !r.guest && guest:
		c.errors.Report(diag.WrongRole, value.Span, "%q is no guest", name).
			WithHint("its part in \"roles\" has no guest: {module: ..}")
		return nil, ""
	}
	return value, name
}

func (c *compiler) call(step *ast.Step, at place) Action {
	call := &Call{Verb: step.Verb, span: step.Key.Span()}
	call.Role, at.role = c.stepRole(step, at, false, step.Verb.Roleless)
	at.anyRole = call.Role != nil && at.role == ""
	var layout verb.FieldLayout
	call.Arguments, layout = c.arguments(step, at)
	call.None = c.expectsNothing(step, at)
	call.Any = c.expectsAnything(step, step.Verb)
	if !call.None && !call.Any {
		call.Expect = c.expectations(step, step.Verb, layout, at)
	}
	c.checkStretch(call, at)
	c.facts.note(c, step, call, at)
	if step.As == nil {
		return call
	}
	if step.Verb.Yields == verb.Nothing {
		c.errors.Report(diag.NothingToName, step.Node.Key("as").Span(), "%s yields nothing to name", step.Verb.Name)
		return call
	}
	name := c.asName(step.As, at)
	if name.Word == "" {
		return call
	}
	call.As = name
	switch kind := step.Verb.Yields; {
	case kind == verb.NewEndpoint && !makesEndpoint(call):
	case kind == verb.NewEndpoint:
		c.facts.portSpaces[endpointName{at.role, name.shown()}] = c.facts.portSpaceOf(call, at.role)
		c.timeline.add(kind, at.role, name)
	case kind == verb.NewFault:
		c.timeline.add(kind, someRole, name)
	case kind.MakesObject():
		c.timeline.add(kind, at.role, name)
	}
	c.addResult(step.As, at, name, resultType(step.Verb, layout))
	return call
}

// makesEndpoint tells whether a step can yield an endpoint: wait_event does for connection requests
// only.
func makesEndpoint(call *Call) bool {
	i := call.Verb.Argument("type")
	if i < 0 || i >= len(call.Arguments) || call.Arguments[i] == nil {
		return true
	}
	known, ok := call.Arguments[i].Constant()
	return !ok || known == "CONNECT_REQUEST"
}

func (c *compiler) guestStep(step *ast.Step, at place) Action {
	if step.Body.Value == "call" {
		return c.guestCall(step, at)
	}
	g := &Guest{Operation: step.Body.Value, Within: c.duration("within", step.Within, at)}
	g.Role, at.role = c.stepRole(step, at, true, false)
	at.anyRole = g.Role != nil && at.role == ""
	result := verb.GuestResult()
	g.Expect = c.expectations(step, result, nil, at)
	if step.AnyResult || step.Expect != nil && step.Expect.Get("exit") == nil {
		g.Expect = slices.DeleteFunc(g.Expect, func(e Expectation) bool { return e.Default })
	}
	switch {
	case g.Operation != "start" && g.Operation != "run":
	case step.Args == nil:
		g.Arguments = c.roleArguments(step, at)
	case step.Args.Kind != syntax.Sequence:
		c.errors.Report(diag.WrongShape, step.Args.Span(), "args is a list of words")
	default:
		g.Arguments = c.guestArguments(step.Args.Items, at)
	}
	if step.As == nil {
		return g
	}
	if name := c.asName(step.As, at); name.Word != "" && g.Operation != "start" {
		g.As = name
		c.addResult(step.As, at, name, resultType(result, nil))
	} else if name.Word != "" {
		c.errors.Report(diag.NothingToName, step.Node.Key("as").Span(), "a guest that has just started has no result to name")
	}
	return g
}
