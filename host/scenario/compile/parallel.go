package compile

import (
	"rdmarun/host/scenario/ast"
)

// parallel compiles branches, each of which begins where the step begins: none can name what another
// makes.  What follows knows what all have made.
func (c *compiler) parallel(step *ast.Step, s *scope) Action {
	p := &Parallel{}
	start := c.timeline
	merged := start.clone()
	outer := c.appointments
	c.appointments = nil
	inLoop := c.inLoop
	c.inLoop = false // a branch times loops of its own
	defer func() { c.inLoop = inLoop }()
	var branches []*branch
	var names []string
	for _, part := range c.branchesOf(step.Do, s) {
		written := part.step
		c.branchCount++
		b := &branch{id: c.branchCount, roles: make(map[string]bool), barriers: make(map[string]bool)}
		if written.Name != nil {
			b.name = label(written.Name.Value)
			names = append(names, b.name)
		}
		branches = append(branches, b)
		c.timeline = start.clone()
		c.branches = append(c.branches, b)
		p.Branches = append(p.Branches, part.compile()...)
		c.branches = c.branches[:len(c.branches)-1]
		merged.merge(c.timeline)
	}
	c.timeline = merged
	open := c.meet(branches, c.appointments)
	if len(c.branches) == 0 {
		c.settle(open, names)
		open = nil
	}
	c.appointments = append(outer, open...)
	return p
}
