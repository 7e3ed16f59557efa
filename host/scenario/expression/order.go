package expression

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/conf"
)

// What the library sorts, sums and counts up it takes for integers with a sign; these do it with numbers as they are.

// longestRange is how many numbers ".." makes; the library allows as many (conf.DefaultMemoryBudget).
const longestRange = 1_000_000

// lists adds the functions for "..", sort, sortBy and sum.
func lists(table conf.FunctionsTable) {
	list, ordered := func([]any) []any { return nil }, func([]any, string) []any { return nil }
	add(table, "..", func(ends ...any) (any, error) { return numbers(ends[0], ends[1]) }, func(any, any) []any { return nil })
	add(table, "sort", func(arguments ...any) (any, error) { return sorted(arguments, func(value any) any { return value }) }, list, ordered)
	add(table, "sortBy", byKey, list, ordered)
	add(table, "sum", func(terms ...any) (any, error) { return total(elements(terms[0])) }, func([]any) any { return nil })
}

// list replaces sort and sortBy, and sum where its numbers may have no sign.  What these are given comes from the
// library's map, which counts the memory of the list against what an expression may have, and is nobody else's.  For
// sortBy it is a list of elements with their keys, so that neither is calculated twice.
func (r *replacer) list(node *ast.Node, n *ast.BuiltinNode) {
	if len(n.Arguments) == 0 {
		return
	}
	rest := n.Arguments[1:]
	switch n.Name {
	case "sort":
		r.call(node, "sort", append([]ast.Node{mapped(n.Arguments[0], &ast.PointerNode{})}, rest...)...)
	case "sortBy":
		if len(rest) == 0 {
			return
		}
		if predicate, is := rest[0].(*ast.PredicateNode); is {
			keyed := mapped(n.Arguments[0], &ast.ArrayNode{Nodes: []ast.Node{&ast.PointerNode{}, predicate.Node}})
			r.call(node, "sortBy", append([]ast.Node{keyed}, rest[1:]...)...)
		}
	case "sum":
		if kind := n.Nature(); !kind.IsUnknown(r.cache) && kind.Type != wide && kind.Type != duration {
			return
		}
		terms := n.Arguments[0]
		if len(rest) > 0 {
			terms = &ast.BuiltinNode{Name: "map", Arguments: n.Arguments}
		}
		r.call(node, "sum", terms)
	}
}

// mapped is a list of what an expression makes of each element.
func mapped(list, each ast.Node) ast.Node {
	return &ast.BuiltinNode{Name: "map", Arguments: []ast.Node{list, &ast.PredicateNode{Node: each}}}
}

// numbers are those from one integer to another.
func numbers(from, to any) ([]any, error) {
	first, last := Exact(from), Exact(to)
	if first == nil || last == nil {
		return nil, fmt.Errorf("\"..\" does not go between %s and %s", Word(from), Word(to))
	}
	count := last.Sub(last, first)
	if count.Sign() < 0 {
		return nil, nil
	}
	if !count.IsInt64() || count.Int64() >= longestRange {
		return nil, fmt.Errorf("a range has %d numbers at most", longestRange)
	}
	list := make([]any, count.Int64()+1)
	for i := range list {
		if n, signed := from.(int); signed && n < 0 {
			list[i] = n + i
			continue
		}
		list[i] = narrow(bitsOf(from) + uint64(i))
	}
	return list, nil
}

// sorted sorts a list in place by what key makes of each element, upwards unless the second argument is "desc".
func sorted(arguments []any, key func(any) any) ([]any, error) {
	list := elements(arguments[0])
	descending := false
	if len(arguments) == 2 {
		switch arguments[1] {
		case "asc":
		case "desc":
			descending = true
		default:
			return nil, fmt.Errorf("the order of a list is \"asc\" or \"desc\", and not %v", arguments[1])
		}
	}
	return list, inOrder(list, descending, key)
}

// byKey sorts elements by the keys beside them.
func byKey(arguments ...any) (any, error) {
	list, err := sorted(arguments, func(pair any) any { return elements(pair)[1] })
	if err != nil {
		return nil, err
	}
	for i, pair := range list {
		list[i] = elements(pair)[0]
	}
	return list, nil
}

// inOrder sorts a list by what key makes of each element.
func inOrder(list []any, descending bool, key func(any) any) error {
	var failed error
	slices.SortStableFunc(list, func(a, b any) int {
		if descending {
			a, b = b, a
		}
		less, err := compare("<", key(a), key(b))
		if err == nil && less == true {
			return -1
		}
		more, otherwise := compare(">", key(a), key(b))
		switch {
		case err != nil:
			failed = err
		case otherwise != nil:
			failed = otherwise
		case more == true:
			return 1
		}
		return 0
	})
	return failed
}

// total is the sum of numbers or of times.
func total(terms []any) (any, error) {
	if len(terms) == 0 {
		return 0, nil
	}
	sum := terms[0]
	for _, term := range terms[1:] {
		var err error
		if sum, err = calculate("+", sum, term); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// elements are those of a list of any type.
func elements(list any) []any {
	if plain, is := list.([]any); is {
		return plain
	}
	value := reflect.ValueOf(list)
	if value.Kind() != reflect.Slice && value.Kind() != reflect.Array {
		return nil
	}
	plain := make([]any, value.Len())
	for i := range plain {
		plain[i] = value.Index(i).Interface()
	}
	return plain
}
