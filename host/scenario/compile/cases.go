package compile

import (
	"slices"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// cases compiles every case with every combination of the matrices.  Each begins where the setup has
// ended.
func (c *compiler) cases(p *Program) {
	taken := make(map[string]bool)
	for _, combo := range c.combinations(c.file.Matrix, c.global) {
		global := c.global
		c.current.global = global.inner()
		c.global = c.current.global
		combo.addTo(c.global)
		c.matrices = []*ast.Matrix{c.file.Matrix}
		c.casesOf(p, combo, taken)
		c.matrices = nil
		c.global, c.current.global = global, global
	}
}

// casesOf compiles the cases of one combination of the file's matrix.
func (c *compiler) casesOf(p *Program, combo combination, taken map[string]bool) {
	c.timeline = newTimeline()
	c.roles, c.instances = make(map[string]*role), make(map[string]*role)
	roles := c.compileRoles()
	for _, r := range roles {
		p.Guests = p.Guests || r.Guest != nil
	}
	if p.Roles == nil {
		p.Roles = roles
	}
	requires := c.requirements(c.file.Requires, c.global)
	c.facts = newFacts()
	setup := c.stepList(c.file.Setup, c.global)
	shared := c.facts
	start := c.timeline
	timeout := c.timeout(c.file.Timeout, DefaultTimeout)
	stall := c.timeout(c.file.Stall, 0)
	merged := start.clone()
	first := len(p.Cases)
	for _, written := range c.written(p) {
		for _, own := range c.combinations(written.Matrix, c.global) {
			scope := c.global.inner()
			own.addTo(scope)
			whole := append(slices.Clone(combo), own...)
			compiled := &Case{
				Tags:      append(texts(written.Tags), p.Tags...),
				Roles:     roles,
				Constants: append(slices.Clone(p.Constants), whole.constants()...),
				Settings:  bindings(whole),
				Timeout:   c.timeoutIn(written.Timeout, timeout, scope),
				Stall:     stall,
				Requires:  append(slices.Clone(requires), c.requirements(written.Requires, scope)...),
				XFail:     c.xfail(written.XFail, scope),
				Setup:     setup,
			}
			c.name(p, compiled, written.Name, whole, scope)
			if taken[compiled.ID] {
				c.errors.Report(diag.NameTaken, written.Name.Span(), "there is a case %q already", written.Name.Value)
			}
			taken[compiled.ID] = true
			if len(p.Cases) >= maxCases {
				c.errors.Report(diag.TooManyCases, c.file.Root.Span(), "the file has more than %d cases", maxCases)
				return
			}
			c.timeline = start.clone()
			c.facts = shared.clone()
			c.matrices = append(c.matrices, written.Matrix)
			compiled.Steps = c.stepList(written.Steps, scope)
			c.matrices = c.matrices[:len(c.matrices)-1]
			c.lintCase()
			compiled.Needs = c.facts.capabilities()
			compiled.Thresholds = c.thresholds(written, scope)
			merged.merge(c.timeline)
			p.Cases = append(p.Cases, compiled)
		}
	}
	c.timeline = merged
	c.facts = newFacts()
	finally := c.stepList(c.file.Finally, c.global)
	for _, compiled := range p.Cases[first:] {
		compiled.Finally = finally
	}
}

// written lists the file's cases; `steps` is one without a name of its own.
func (c *compiler) written(p *Program) []*ast.Case {
	if c.file.Steps == nil {
		return c.file.Cases
	}
	return append([]*ast.Case{{Steps: c.file.Steps}}, c.file.Cases...)
}

func bindings(combo combination) []Binding {
	list := make([]Binding, len(combo))
	for i, each := range combo {
		list[i] = Binding{each.name, each.text}
	}
	return list
}

func (c *compiler) timeout(node *syntax.Node, otherwise time.Duration) time.Duration {
	return c.timeoutIn(node, otherwise, c.global)
}

func (c *compiler) timeoutIn(node *syntax.Node, otherwise time.Duration, s *scope) time.Duration {
	value := c.duration("timeout", node, place{scope: s})
	if value == nil {
		return otherwise
	}
	known, ok := value.Constant()
	if !ok {
		if len(c.missing) == 0 {
			c.errors.Report(diag.NotConstant, node.Span(), "a timeout must be known before the run")
		}
		return otherwise
	}
	if known.(time.Duration) <= 0 {
		c.errors.Report(diag.OutOfRange, node.Span(), "a timeout must be longer than nothing")
	}
	return known.(time.Duration)
}

// soft reads the settings of the soft provider.  Roles that are guests act without telling a virtual
// clock, so their runs have the wall's.
func (c *compiler) soft(p *Program) {
	p.Soft = Soft{Virtual: !slices.ContainsFunc(p.Roles, func(r testbed.RoleConfig) bool { return r.Guest != nil })}
	if c.file.Soft == nil {
		return
	}
	clock := c.knownScalar(&verb.Argument{Name: "clock", Type: verb.Word, Words: []string{"virtual", "wall"}}, c.file.Soft.Clock)
	switch {
	case clock == "wall":
		p.Soft.Virtual = false
	case clock == "virtual" && !p.Soft.Virtual:
		c.errors.Report(diag.Conflict, c.file.Soft.Clock.Span(), "a file with guests runs on the wall clock").
			WithHint("a guest acts without telling, so a virtual clock could not know when to move")
	}
	if seed := c.knownScalar(&verb.Argument{Name: "seed", Type: verb.Unsigned}, c.file.Soft.Seed); seed != nil {
		p.Soft.Seed, p.Soft.Seeded = seed.(uint64), true
	}
}
