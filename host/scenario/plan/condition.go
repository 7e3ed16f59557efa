package plan

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/shape"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Requirement is a condition of the surroundings.
type Requirement struct {
	Text  string
	Span  diag.Span
	value *Value
}

// Holds evaluates the condition with what the surroundings are, in the form of Surroundings.
func (r *Requirement) Holds(surroundings expression.Env) (bool, error) {
	value, err := r.value.Get(surroundings)
	return value == true, err
}

// XFail says when a case is known to fail, and why.
type XFail struct {
	When   *Requirement // nil: always
	Reason string
}

// Surroundings lists what `requires` and `xfail` may mention; guests are the names of the file's guests.
func Surroundings(guests []string) expression.Names {
	available := expression.Object{}
	for _, name := range guests {
		available[name] = expression.Boolean
	}
	return expression.Names{
		"provider":  expression.Object{"name": expression.String, "soft": expression.Boolean, "verbs": expression.Boolean},
		"clock":     expression.Object{"virtual": expression.Boolean},
		"transport": expression.Object{"ib": expression.Boolean, "roce": expression.Boolean, "iwarp": expression.Boolean},
		"device": expression.Object{
			"name": expression.String, "atomic": expression.Boolean, "srq": expression.Boolean, "mw": expression.Boolean, "timestamps": expression.Boolean,
			"max_qp_rd_atom": expression.Integer, "max_qp_wr": expression.Integer, "max_sge": expression.Integer,
		},
		"driver": expression.String,
		"fault": expression.Object{
			"link": expression.Boolean, "cm": expression.Boolean, "data": expression.Boolean, "device": expression.Boolean,
		},
		"guest": available,
		"roles": expression.Object{
			"distinct_hosts": expression.Boolean, "distinct_devices": expression.Boolean, "distinct_addresses": expression.Boolean,
		},
	}
}

// requirements compiles the items of `requires`; all must hold.
func (c *compiler) requirements(nodes []*syntax.Node, known *scope) []*Requirement {
	var list []*Requirement
	for _, node := range nodes {
		if r := c.requirement(node, known); r != nil {
			list = append(list, r)
		}
	}
	return list
}

func (c *compiler) requirement(node *syntax.Node, known *scope) *Requirement {
	return c.requirementWith(node, known, nil)
}

// requirementWith is requirement with more names that only the run knows.
func (c *compiler) requirementWith(node *syntax.Node, known *scope, more expression.Names) *Requirement {
	var guests []string
	for _, written := range c.file.Roles {
		if written.Guest != nil {
			guests = append(guests, written.Name.Value)
		}
	}
	s := &scope{names: Surroundings(guests), consts: expression.Env{}, nodes: map[string]bound{}}
	for name, value := range known.consts {
		if _, taken := s.names[name]; !taken { // as in the run: a matrix may have the name provider
			s.add(name, known.names[name], value)
		}
	}
	for name, nameType := range more {
		s.add(name, nameType, nil)
	}
	defer c.onlyScope()() // the surroundings know nothing of steps and roles
	value := c.truth("a condition", node, place{scope: s})
	if value == nil {
		return nil
	}
	return &Requirement{Text: node.Value, Span: node.Span(), value: value}
}

func (c *compiler) xfail(written *shape.XFail, s *scope) *XFail {
	if written == nil {
		return nil
	}
	x := &XFail{}
	if reason := c.knownIn(&verb.Argument{Name: "reason", Type: verb.Text}, written.Reason, s); reason != nil {
		x.Reason = reason.(string)
	}
	if written.When != nil {
		x.When = c.requirement(written.When, s)
	}
	return x
}
