package expression

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/checker/nature"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/vm/runtime"
)

// Unsigned is the type of integers of 64 bits without a sign.
var Unsigned = TypeOf(uint64(0))

// The library takes an unsigned integer for a signed one, and multiplies a time by a fraction to a number.  So the
// operators between these, and between values that only the run has, become calls of this package's functions.  Their
// names are not valid in expressions.

const ours = "operator "

var (
	wide     = reflect.TypeFor[uint64]()
	duration = reflect.TypeFor[time.Duration]()
)

// operations are the functions by those names, and those that replace the library's own.
func operations() conf.FunctionsTable {
	table := make(conf.FunctionsTable)
	for _, operator := range []string{"+", "-", "*", "/", "%"} {
		calculate := func(sides ...any) (any, error) { return calculate(operator, sides[0], sides[1]) }
		add(table, operator, calculate, func(any, any) any { return nil })
		add(table, operator+" time", calculate, func(any, any) time.Duration { return 0 })
		add(table, operator+" fraction", calculate, func(any, any) float64 { return 0 })
	}
	for _, operator := range []string{"<", "<=", ">", ">="} {
		add(
			table, operator, func(sides ...any) (any, error) { return compare(operator, sides[0], sides[1]) },
			func(any, any) bool { return false },
		)
	}
	override(table)
	lists(table)
	return table
}

// add adds a function of this package, with the Go types that it may have.
func add(table conf.FunctionsTable, name string, of func(arguments ...any) (any, error), kinds ...any) {
	function := &builtin.Function{Name: ours + name, Func: of}
	for _, kind := range kinds {
		function.Types = append(function.Types, reflect.TypeOf(kind))
	}
	table[ours+name] = function
}

// replacer replaces operators by calls in a checked tree.
type replacer struct {
	cache   *nature.Cache
	changed bool
	bad     *mismatchedOperator
}

type mismatchedOperator struct {
	node    *ast.BinaryNode
	message string
}

func (r *replacer) Visit(node *ast.Node) {
	switch n := (*node).(type) {
	case *ast.UnaryNode:
		if n.Operator != "-" {
			return
		}
		switch kind := n.Node.Nature(); {
		case kind.Type == duration:
			r.call(node, "* time", &ast.IntegerNode{Value: -1}, n.Node)
		case kind.Type == wide || kind.IsUnknown(r.cache):
			r.call(node, "*", &ast.IntegerNode{Value: -1}, n.Node)
		}
	case *ast.BuiltinNode:
		r.list(node, n)
	case *ast.BinaryNode:
		name := r.replacement(n)
		if name != "" {
			r.call(node, name, n.Left, n.Right)
		}
		if name == ".." { // the map counts its memory
			numbers := *node
			ast.Patch(node, mapped(numbers, &ast.PointerNode{}))
		}
	}
}

func (r *replacer) call(node *ast.Node, name string, arguments ...ast.Node) {
	called := &ast.CallNode{Callee: &ast.IdentifierNode{Value: ours + name}, Arguments: arguments}
	ast.Patch(node, called)
	called.Callee.SetLocation(called.Location())
	r.changed = true
}

// replacement is the name of the function for an operator, "" for one that the library does right.
func (r *replacer) replacement(n *ast.BinaryNode) string {
	left, right := n.Left.Nature(), n.Right.Nature()
	unknown := left.IsUnknown(r.cache) || right.IsUnknown(r.cache)
	times := left.Type == duration || right.Type == duration
	bothTimes := left.Type == duration && right.Type == duration
	number := left.IsNumber() || right.IsNumber()
	unsigned := (left.Type == wide || right.Type == wide) && (left.IsNumber() && right.IsNumber())
	switch n.Operator {
	case "<", "<=", ">", ">=":
		if unknown || unsigned {
			return n.Operator
		}
	case "..":
		if unknown || left.Type == wide || right.Type == wide {
			return n.Operator
		}
	case "+", "-", "%":
		if unknown || unsigned {
			return n.Operator
		}
		if n.Operator == "%" && bothTimes {
			return "% time"
		}
	case "*":
		switch {
		case bothTimes:
			r.bad = &mismatchedOperator{n, `"*" does not go between a duration and a duration`}
		case times && number:
			return "* time"
		case unknown || unsigned:
			return "*"
		}
	case "/":
		switch {
		case bothTimes:
			return "/ fraction"
		case left.Type == duration && right.IsNumber():
			return "/ time"
		case unknown:
			return "/"
		}
	}
	return ""
}

// calculate is an operator between two values.
func calculate(operator string, a, b any) (any, error) {
	x, aTime := a.(time.Duration)
	y, bTime := b.(time.Duration)
	switch {
	case aTime && bTime:
		return betweenTimes(operator, x, y)
	case aTime && (operator == "*" || operator == "/"):
		if factor, ok := Number(b); ok {
			return scaled(operator, x, factor)
		}
	case bTime && operator == "*":
		if factor, ok := Number(a); ok {
			return scaled(operator, y, factor)
		}
	case !aTime && !bTime && operator != "/":
		if result, ok, err := unsigned(operator, a, b); ok {
			return result, err
		}
		return map[string]func(a, b any) any{
			"+": runtime.Add, "-": runtime.Subtract, "*": runtime.Multiply,
			"%": func(a, b any) any { return runtime.Modulo(a, b) },
		}[operator](a, b), nil
	case !aTime && !bTime:
		return runtime.Divide(a, b), nil
	}
	return nil, fmt.Errorf("%q does not go between %s and %s", operator, Word(a), Word(b))
}

func betweenTimes(operator string, x, y time.Duration) (any, error) {
	switch operator {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "/":
		return float64(x) / float64(y), nil
	case "%":
		if y == 0 {
			return nil, fmt.Errorf("a division by no time")
		}
		return x % y, nil
	}
	return nil, fmt.Errorf("%q does not go between a duration and a duration", operator)
}

// scaled is a time, so many times or so many parts of it, to the nanosecond.
func scaled(operator string, d time.Duration, factor float64) (any, error) {
	if n := int64(factor); operator == "*" && float64(n) == factor {
		if exact := new(big.Int).Mul(big.NewInt(int64(d)), big.NewInt(n)); exact.IsInt64() {
			return time.Duration(exact.Int64()), nil
		}
	}
	result := float64(d) * factor
	if operator == "/" {
		result = float64(d) / factor
	}
	if math.IsNaN(result) || math.Abs(result) >= 1<<63 {
		return nil, fmt.Errorf("the result is not a time: it is beyond 292 years, or a division by 0")
	}
	return time.Duration(math.Round(result)), nil
}

// Number is a number as a fraction; false for what is none, times and texts among it.
func Number(value any) (float64, bool) {
	switch v := value.(type) {
	case int:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// unsigned calculates with integers if one of them has no sign; ok is false for other values. A result that fits into
// 64 bits, with a sign or without, is exact. Otherwise the result is the lowest 64 bits, as for an atomic operation.
func unsigned(operator string, a, b any) (result any, ok bool, err error) {
	x, y := Exact(a), Exact(b)
	if x == nil || y == nil || !isWide(a) && !isWide(b) {
		return nil, false, nil
	}
	z := new(big.Int)
	switch operator {
	case "+":
		z.Add(x, y)
	case "-":
		z.Sub(x, y)
	case "*":
		z.Mul(x, y)
	case "%":
		if y.Sign() == 0 {
			return nil, true, fmt.Errorf("a division by zero")
		}
		z.Rem(x, y)
	}
	switch {
	case z.IsInt64():
		return int(z.Int64()), true, nil
	case z.IsUint64():
		return z.Uint64(), true, nil
	}
	return narrow(z.And(z, new(big.Int).SetUint64(math.MaxUint64)).Uint64()), true, nil
}

// narrow is an integer without a sign as an int, where it fits.
func narrow(n uint64) any {
	if n <= math.MaxInt64 {
		return int(n)
	}
	return n
}

func isWide(value any) bool {
	_, is := value.(uint64)
	return is
}

// Exact is an integer, with a sign or without, to compare and calculate with exactly; nil for what is none.
func Exact(value any) *big.Int {
	switch v := value.(type) {
	case int:
		return big.NewInt(int64(v))
	case uint64:
		return new(big.Int).SetUint64(v)
	}
	return nil
}

func compare(operator string, a, b any) (any, error) {
	_, aTime := a.(time.Duration)
	_, bTime := b.(time.Duration)
	if aTime != bTime {
		return nil, fmt.Errorf("%q does not go between %s and %s", operator, Word(a), Word(b))
	}
	if x, y := Exact(a), Exact(b); x != nil && y != nil {
		order := x.Cmp(y)
		return map[string]bool{"<": order < 0, "<=": order <= 0, ">": order > 0, ">=": order >= 0}[operator], nil
	}
	switch operator {
	case "<":
		return runtime.Less(a, b), nil
	case "<=":
		return runtime.LessOrEqual(a, b), nil
	case ">":
		return runtime.More(a, b), nil
	}
	return runtime.MoreOrEqual(a, b), nil
}
