package expression

import (
	"slices"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"
)

// Operand is a part of a condition with the value that it had.
type Operand struct {
	Text  string
	Value any
}

// maxOperands is how many are worth a look.
const maxOperands = 8

// Operands evaluates what a condition compares, for the message when it does not hold: of `a + 1 == b && done` these
// are a + 1, b and done.  Literals are left out, and what stands in the braces of all, any and their like has one
// value for each item.  An operand that cannot be computed, as when a comparison before it was there to prevent
// that, is left out, too.
func Operands(source string, env Env) []Operand {
	tree, err := parser.Parse(source)
	if err != nil {
		return nil
	}
	var operands []Operand
	for _, node := range compared(tree.Node) {
		text := node.String()
		if len(operands) == maxOperands || slices.ContainsFunc(operands, func(o Operand) bool { return o.Text == text }) {
			continue
		}
		if value, err := expr.Eval(text, map[string]any(env)); err == nil {
			operands = append(operands, Operand{text, value})
		}
	}
	return operands
}

// compared lists the operands of the comparisons that a condition is made of, in their order.
func compared(node ast.Node) []ast.Node {
	switch n := node.(type) {
	case *ast.BinaryNode:
		switch n.Operator {
		case "&&", "||", "and", "or":
			return append(compared(n.Left), compared(n.Right)...)
		}
		return slices.DeleteFunc([]ast.Node{n.Left, n.Right}, isLiteral)
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			return compared(n.Node)
		}
	case *ast.IdentifierNode, *ast.MemberNode, *ast.CallNode, *ast.ChainNode:
		return []ast.Node{node}
	}
	return nil
}

func isLiteral(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.ConstantNode:
		return true
	case *ast.UnaryNode: // -1
		return isLiteral(n.Node)
	case *ast.ArrayNode:
		return !slices.ContainsFunc(n.Nodes, func(each ast.Node) bool { return !isLiteral(each) })
	}
	return false
}
