package expression

import (
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/quantity"
)

// Error is what is wrong with an expression; From and To are byte offsets into its source.
type Error struct {
	diag.Problem
	From, To int
}

func (e *Error) hint(hint string) *Error {
	e.Hint = hint
	return e
}

// at converts the library's place, which counts characters, into bytes.
func at(source string, location file.Location, kind diag.Code, message string) *Error {
	return &Error{
		diag.Problem{Code: kind, Message: message}, byteOffset(source, location.From), byteOffset(source, location.To),
	}
}

func whole(source string, kind diag.Code, message string) *Error {
	return &Error{diag.Problem{Code: kind, Message: message}, 0, len(source)}
}

func byteOffset(source string, characters int) int {
	for i := range source {
		if characters == 0 {
			return i
		}
		characters--
	}
	return len(source)
}

var (
	unknownName  = regexp.MustCompile(`^unknown name (\S+)$`)
	unknownField = regexp.MustCompile(`(?:unknown field|has no field|has no method) (\S+)`)
	mismatch     = regexp.MustCompile(`^invalid operation: (\S+) \(mismatched types (.+) and (.+)\)$`)
)

// explain turns the library's error into one in the words of scenarios.
func explain(t text, names Names, err error) *Error {
	source := t.source
	var located *file.Error
	if !errors.As(err, &located) {
		line, _, _ := strings.Cut(err.Error(), "\n")
		return whole(source, diag.ExpressionSyntax, written(line))
	}
	message := written(located.Message)
	if match := unknownName.FindStringSubmatch(message); match != nil {
		name := match[1]
		return at(source, located.Location, diag.UndefinedName, "nothing named \""+name+"\" here").
			hint(nearOrAll(name, names.sorted()))
	}
	if match := unknownField.FindStringSubmatch(message); match != nil {
		e := at(source, located.Location, diag.UndefinedMember, "no member \""+match[1]+"\" here")
		return e.hint(nearOrAll(match[1], siblings(t.masked, names, located.From)))
	}
	if match := mismatch.FindStringSubmatch(message); match != nil {
		return at(source, located.Location, diag.ExpressionType,
			"\""+match[1]+"\" does not go between "+nameOfType(match[2])+" and "+nameOfType(match[3])).hint(
			unitHint(match[2], match[3]),
		)
	}
	if _, parseErr := parser.Parse(t.masked); parseErr != nil {
		message = strings.Replace(message, "unexpected token EOF", "the expression ends too early", 1)
		bad := at(source, located.Location, diag.ExpressionSyntax, message)
		if slices.Contains(quantity.Names(quantity.Units()), source[bad.From:bad.To]) {
			bad.Hint = "a unit follows its number without a blank: 250ms"
		}
		if message == `unexpected token Operator("=")` {
			bad.Hint = "write == to compare"
		}
		return bad
	}
	return at(source, located.Location, diag.ExpressionType, goTypes.Replace(message))
}

// nearOrAll suggests the nearest candidate, or lists them when they are few.
func nearOrAll(name string, candidates []string) string {
	const few = 16
	if hint := diag.DidYouMean(name, candidates); hint != "" || len(candidates) == 0 || len(candidates) > few {
		return hint
	}
	return diag.ThereAre(candidates)
}

// goTypes takes the Go out of the library's sentences.
var goTypes = strings.NewReplacer(
	"map[string]interface {}", "record", "interface {}", "any value", "time.Duration", "duration",
	"[]uint8", "bytes", "float64", "fraction", "non-bool expression", "no condition",
	"array elements can only be selected using an integer (got string)",
	"a list has items and no members, client[0].name",
)

// unitHint is the hint for one side that lacks a unit where the other is a time.
func unitHint(left, right string) string {
	for _, pair := range [][2]string{{left, right}, {right, left}} {
		if pair[0] == "time.Duration" && (pair[1] == "int" || pair[1] == "uint64" || pair[1] == "float64") {
			return "a time has its unit: 5ms; d / 1ms is a number"
		}
	}
	return ""
}

func nameOfType(goName string) string {
	switch goName {
	case "int", "uint64":
		return "an integer"
	case "string":
		return "a string"
	case "bool":
		return "a boolean"
	case "time.Duration":
		return "a duration"
	}
	return "a " + goTypes.Replace(goName)
}

// siblings lists the members that could replace an unknown one.
func siblings(masked string, names Names, from int) []string {
	tree, err := parser.Parse(masked)
	if err != nil {
		return nil
	}
	finder := &memberFinder{from: from}
	ast.Walk(&tree.Node, finder)
	if finder.found == nil {
		return nil
	}
	if t := typeOfPath(finder.found.Node, names); t != nil {
		return members(t)
	}
	return nil
}

type memberFinder struct {
	from  int
	found *ast.MemberNode
}

func (m *memberFinder) Visit(node *ast.Node) {
	if member, ok := (*node).(*ast.MemberNode); ok && member.Property.Location().From == m.from {
		m.found = member
	}
}

// typeOfPath is the type of a.b.c or f(x), as far as names has it.
func typeOfPath(node ast.Node, names Names) Type {
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return names[n.Value]
	case *ast.MemberNode:
		object, ok := typeOfPath(n.Node, names).(Object)
		property, literal := n.Property.(*ast.StringNode)
		if ok && literal {
			return object[property.Value]
		}
	case *ast.CallNode:
		t := typeOfPath(n.Callee, names)
		if t == nil {
			return nil
		}
		if function := t.Nature().Type; function != nil && function.Kind() == reflect.Func && function.NumOut() > 0 {
			return TypeOf(reflect.Zero(function.Out(0)).Interface())
		}
	}
	return nil
}

// Operand is a part of a condition with the value that it had.
type Operand struct {
	Text  string
	Value any
}

// maxOperands is how many are worth a look.
const maxOperands = 8

// Operands evaluates what a condition compares, for the message when it does not hold: of `a + 1 == b && done` these
// are a + 1, b and done.  Literals are left out, and the text in the braces of all, any and their like has one value
// for each item.  An operand that cannot be computed, as when a comparison before it was there to prevent that, is left
// out, too.
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
		if len(operands) == maxOperands ||
			slices.ContainsFunc(operands, func(o Operand) bool { return o.Text == text }) {
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
		return slices.DeleteFunc([]ast.Node{n.Left, n.Right}, func(side ast.Node) bool {
			return isLiteral(side, literals)
		})
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
