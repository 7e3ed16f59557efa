package compile

import (
	"slices"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

func (c *compiler) unknownRole(name string, span diag.Span) {
	if bad := c.noInstance(name); bad != nil {
		c.report(bad, span)
		return
	}
	c.errors.Report(diag.UnknownRole, span, "there is no role %q", name).
		WithHint("%s", hintOr(diag.DidYouMean(name, sortedKeys(c.roles)), diag.ThereAre(sortedKeys(c.roles))))
}

// roleMembers are what expressions find in every role, ROLE.address.
var roleMembers = []string{"name", "address", "device", "counters"}

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
	case c.axisNamed(node.Value) != nil:
		c.errors.Report(diag.NameTaken, node.Span(), "%q is a name of a matrix already, in line %d", node.Value, c.axisNamed(node.Value).Span().Line).
			WithHint("call one of them something else, or give the name to each case that wants it, and not to the file")
	default:
		return true
	}
	return false
}

func isParam(file *ast.File, name string) bool {
	return slices.ContainsFunc(file.Params, func(p *ast.Param) bool { return p.Name.Value == name })
}

func isName(text string) bool { return ast.IsName(text) }
