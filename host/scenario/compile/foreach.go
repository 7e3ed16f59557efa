package compile

import (
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/verb"
)

// maxRounds bounds a for_each, which is written out before the run.
const maxRounds = 10_000

// forEach compiles the steps once for each combination of values, which are known in them.
func (c *compiler) forEach(step *ast.Step, at place) Action {
	block := &Block{Rounds: true}
	for _, combo := range c.product(step.Axes, step.Key.Span(), at.scope, maxRounds) {
		inner := at.scope.inner()
		combo.addTo(inner)
		use := &Use{}
		for _, each := range combo {
			use.With = append(use.With, Parameter{each.name, constant(each.value, each.node.Span())})
		}
		round := &Step{Span: step.Key.Span(), Action: use}
		if step.Name != nil {
			round.Name = c.scalar(&verb.Argument{Name: "name", Type: verb.Text}, step.Name, place{scope: inner})
			round.Label = label(step.Name.Value)
		}
		leave := c.enter(round)
		use.Steps = c.stepList(step.Do, inner)
		leave()
		block.Steps = append(block.Steps, round)
	}
	return block
}
