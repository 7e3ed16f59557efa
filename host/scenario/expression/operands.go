package expression

import (
	"slices"

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
	read, bad := read(source)
	if bad != nil {
		return nil
	}
	tree, err := parser.Parse(read.masked)
	if err != nil {
		return nil
	}
	names := make(Names, len(env))
	for name := range env {
		names[name] = Any // each has the type of its value
	}
	var operands []Operand
	for _, node := range compared(tree.Node, read.literals) {
		text := written(node.String())
		if len(operands) == maxOperands || slices.ContainsFunc(operands, func(o Operand) bool { return o.Text == text }) {
			continue
		}
		program, bad := Compile(text, names, nil)
		if bad != nil {
			continue
		}
		if value, err := program.Run(env); err == nil {
			operands = append(operands, Operand{text, value})
		}
	}
	return operands
}

// compared lists the operands of the comparisons that a condition is made of, in their order.
func compared(node ast.Node, literals map[string]any) []ast.Node {
	switch n := node.(type) {
	case *ast.BinaryNode:
		switch n.Operator {
		case "&&", "||", "and", "or":
			return append(compared(n.Left, literals), compared(n.Right, literals)...)
		}
		return slices.DeleteFunc([]ast.Node{n.Left, n.Right}, func(side ast.Node) bool { return isLiteral(side, literals) })
	case *ast.UnaryNode:
		if n.Operator == "!" || n.Operator == "not" {
			return compared(n.Node, literals)
		}
	case *ast.IdentifierNode, *ast.MemberNode, *ast.CallNode, *ast.ChainNode:
		return []ast.Node{node}
	}
	return nil
}

func isLiteral(node ast.Node, literals map[string]any) bool {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return literals[n.Value] != nil
	case *ast.NilNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.StringNode, *ast.ConstantNode:
		return true
	case *ast.UnaryNode: // -1
		return isLiteral(n.Node, literals)
	case *ast.ArrayNode:
		return !slices.ContainsFunc(n.Nodes, func(each ast.Node) bool { return !isLiteral(each, literals) })
	}
	return false
}
