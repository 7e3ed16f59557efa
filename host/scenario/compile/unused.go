package compile

import (
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
)

// unusedNames warns of parameters and names of matrices that no expression of the file mentions: whoever sets them, or
// reads the cases that they make, believes that they do something.
func (c *compiler) unusedNames() {
	if c.options.Wrong || c.errors.Len() > 0 {
		return // what is wrong may be what would mention them
	}
	if defaults := c.file.Root.Get("defaults"); defaults != nil {
		mentionIn(defaults, c.main.global) // perhaps no step takes any of them
	}
	mentioned := c.main.global.mentioned
	params := func(list []*ast.Param, of string) {
		for _, param := range list {
			if name := param.Name; !mentioned[name] {
				c.errors.Report(diag.Unused, name.Span(), "nothing mentions the parameter %q%s", name.Value, of).
					WithHint("its value is $(%s); without a use, leave it out", name.Value)
			}
		}
	}
	params(c.file.Params, "")
	for _, fragment := range c.file.Fragments {
		params(fragment.Params, " of this fragment")
	}
	c.unusedAxes(c.file.Matrix, mentioned)
	for _, written := range c.file.Cases {
		c.unusedAxes(written.Matrix, mentioned)
	}
}

// mentionIn notes all words of all expressions in a part of the file.
func mentionIn(node *syntax.Node, s *scope) {
	pieces, _ := expression.Scan(node.Value)
	for _, piece := range pieces {
		if piece.Expression {
			for word := range expression.Words(piece.Text) {
				s.mention(word)
			}
		}
	}
	for _, pair := range node.Pairs {
		mentionIn(pair.Value, s)
	}
	for _, item := range node.Items {
		mentionIn(item, s)
	}
}

func (c *compiler) unusedAxes(m *ast.Matrix, mentioned map[*syntax.Node]bool) {
	if m == nil {
		return
	}
	for _, axis := range m.Axes {
		if name := axis.Name; !mentioned[name] && name.Value != providerAxis {
			c.errors.Report(diag.Unused, name.Span(), "nothing mentions %q, so the cases of its values are the same", name.Value).
				WithHint("its value is $(%s); to run a case several times there is --repeat", name.Value)
		}
	}
}
