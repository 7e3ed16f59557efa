package compile

import (
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// indexName is the number of the instance in a step of a counted role.
const indexName = "index"

// countedRole is the counted role whose instances all do a step; nil for any other step.
func (c *compiler) countedRole(step *ast.Step, s *scope) *role {
	if len(c.instances) == 0 || step.Role == nil || step.Role.Kind != syntax.Scalar {
		return nil
	}
	name := step.Role.Value
	if expression.Contains(name) {
		report := c.errors
		c.errors = &diag.List{} // whoever compiles the step says what is wrong
		value := c.scalar(&verb.Argument{Name: "role", Type: verb.Text}, step.Role, place{scope: s})
		c.errors = report
		if value == nil {
			return nil
		}
		known, _ := value.Constant()
		name, _ = known.(string)
	}
	if r := c.roles[name]; r != nil && r.count > 0 {
		return r
	}
	return nil
}

// eachInstance compiles a step once for each instance, one after another.  All guests start before the first is
// waited for: they may need each other.
func (c *compiler) eachInstance(step *ast.Step, group *role, s *scope) *Step {
	block := &Block{}
	for _, phase := range phases(step) {
		for i := range group.count {
			block.Steps = append(block.Steps, c.instanceStep(phase, group, i, s))
		}
	}
	return &Step{Span: step.Key.Span(), Action: block}
}

// phases are the step itself, but of `guest: run` first the start and then the wait.
func phases(step *ast.Step) []*ast.Step {
	if step.Action != ast.GuestAction || step.Body.Value != "run" {
		return []*ast.Step{step}
	}
	start, wait := *step, *step
	begin, end := *step.Body, *step.Body
	begin.Value, end.Value = "start", "wait"
	start.Body, wait.Body = &begin, &end
	start.AnyResult = false
	start.Expect, start.As, start.Within, start.Took, start.XFail = nil, nil, nil, nil, nil
	wait.Args = nil
	return []*ast.Step{&start, &wait}
}

// instanceStep compiles a step for one instance, whose number is known in it.
func (c *compiler) instanceStep(step *ast.Step, group *role, index int, s *scope) *Step {
	named, role := *step, *step.Role
	role.Value = instanceName(group.name, index)
	named.Role = &role
	use := &Use{With: []Parameter{{indexName, constant(index, step.Role.Span())}}}
	round := &Step{Span: step.Key.Span(), Action: use}
	if _, taken := s.names[indexName]; taken {
		c.errors.AddNew(&diag.Diagnostic{Code: diag.NameTaken, Span: step.Role.Span(), Message: "\"index\" is the number of the instance here, and something else is called so, too",
			Hint: "call the parameter or counter around the step something else"})
		return round
	}
	inner := s.inner()
	inner.add(indexName, expression.Integer, index)
	report := c.errors
	c.errors = &diag.List{}
	use.Steps = c.stepList([]*ast.Step{&named}, inner)
	found := c.errors
	c.errors = report
	for _, each := range found.Sorted() {
		c.errors.AddNew(each) // what is wrong with one instance is mostly wrong with all
	}
	return round
}

// part is what one branch of a parallel step does.
type part struct {
	step    *ast.Step
	compile func() []*Step
}

// branchesOf are the branches of a parallel step: each instance of a counted role is one.
func (c *compiler) branchesOf(steps []*ast.Step, s *scope) []part {
	var parts []part
	for _, step := range steps {
		group := c.countedRole(step, s)
		if group == nil {
			parts = append(parts, part{step, func() []*Step { return c.stepList([]*ast.Step{step}, s) }})
			continue
		}
		for i := range group.count {
			parts = append(parts, part{step, func() []*Step { return []*Step{c.instanceStep(step, group, i, s)} }})
		}
	}
	return parts
}

// groupOf is the counted role of which text such as client[$(i)] names an instance; nil for other text.
func (c *compiler) groupOf(node *syntax.Node) *role {
	pieces, _ := expression.Scan(node.Value)
	if len(pieces) == 0 || pieces[0].Expression {
		return nil
	}
	name, _, bracket := strings.Cut(pieces[0].Text, "[")
	if r := c.roles[name]; bracket && r != nil && r.count > 0 {
		return r
	}
	return nil
}

// noteBranches notes who drives a role.
func (c *compiler) noteBranches(name string) {
	for _, b := range c.branches {
		b.roles[name] = true
	}
}

// resultNamed is the type of the result that a name means at a place: the only one of that name, or the step's own
// instance's.
func (c *compiler) resultNamed(at place, word string) expression.Type {
	owners := c.timeline.results[word]
	if len(owners) == 1 {
		for _, resultType := range owners {
			return resultType
		}
	}
	own := c.instances[at.role]
	if own == nil || owners[at.role] == nil {
		return nil
	}
	for name := range owners {
		if r := c.instances[name]; name != someRole && (r == nil || r.group != own.group) {
			return nil
		}
	}
	return owners[at.role]
}

// groupResult is the type of a result that some instance of a counted role has; nil when none has it.
func (c *compiler) groupResult(group *role, owners map[string]expression.Type) expression.Type {
	if group.count == 0 {
		return nil
	}
	for name, resultType := range owners {
		if r := c.instances[name]; r != nil && r.group == group.name {
			return resultType
		}
	}
	return nil
}
