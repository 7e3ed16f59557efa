package expression

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
)

// Documented is a function or an operator with what it does.
type Documented struct{ Name, Doc string }

// Operators lists the operators, those that bind least first.
func Operators() []Documented {
	return []Documented{
		{"let", "let half = size / 2; half * 2: a name for the rest of the expression"},
		{"|", "size | max(64): the left side is the function's first argument"},
		{"?:", "condition ? a : b"},
		{"or", "also ||"}, {"||", "also or"}, {"and", "also &&"}, {"&&", "also and"}, {"not", "also !"},
		{"!", "also not"},
		{"==", "equal"}, {"!=", "different"}, {"<", "less"}, {"<=", "at most"}, {">", "more"}, {">=", "at least"},
		{"in", "an item of a list, or a key of a mapping: op in ['a', 'b'], size in 1..100; not in"},
		{"contains", "a text in a text"}, {"startsWith", "a text at the beginning of one"},
		{"endsWith", "a text at the end of one"},
		{"matches", "a text and a regular expression (of Go)"},
		{"..", "1..4 is [1, 2, 3, 4]"},
		{"+", "sum; also of texts, and of durations"}, {"-", "difference; also of durations"},
		{"*", "product; also of a duration and a number: 3 * 655.36ms"},
		{
			"/",
			"quotient, with its fraction: 1 / 2 is 0.5; of a duration and a number a duration, of two durations a " +
				"number",
		},
		{"%", "remainder"}, {"**", "power; ^ is refused, bitxor(a, b) is the exclusive or"},
		{"??", "the right side where the left one is nil"},
		{".", "a member: server.address"}, {"?.", "a member, nil of nil"},
		{"[ ]", "an item: list[0], list[-1], text[0:3]"},
	}
}

// Functions lists the functions; predicates name the item #, its members .name.
func Functions() []Documented {
	return []Documented{
		{"abs", "abs(n): without its sign; also of a duration"}, {"ceil", "ceil(f): rounded up"},
		{"floor", "floor(f): rounded down"}, {"round", "round(f): to the nearest"},
		{"int", "int(x): an integer of a fraction, which is cut off, or of a text"}, {"float", "float(x): a fraction"},
		{"max", "max(a, b..) or max(list); also of durations"}, {"min", "min(a, b..) or min(list); also of durations"},
		{"sum", "sum(list)"}, {"mean", "mean(list)"}, {"median", "median(list)"},
		{"bitand", "bitand(a, b)"}, {"bitor", "bitor(a, b)"}, {"bitxor", "bitxor(a, b)"},
		{"bitnand", "bitnand(a, b): a without the bits of b"}, {"bitnot", "bitnot(a)"},
		{"bitshl", "bitshl(a, n): a << n"}, {"bitshr", "bitshr(a, n): a >> n, the sign stays"},
		{"bitushr", "bitushr(a, n): a >> n of an unsigned number"},
		{"string", "string(x): as text"}, {"upper", "upper(text)"}, {"lower", "lower(text)"},
		{"trim", "trim(text) or trim(text, characters)"},
		{"trimPrefix", "trimPrefix(text, prefix)"}, {"trimSuffix", "trimSuffix(text, suffix)"},
		{"replace", "replace(text, old, new)"}, {"repeat", "repeat(text, n)"},
		{"split", "split(text, separator): a list"},
		{"splitAfter", "splitAfter(text, separator): a list, the separators stay"}, {"join", "join(list, separator)"},
		{"indexOf", "indexOf(text, part): -1 where there is none"}, {"lastIndexOf", "lastIndexOf(text, part)"},
		{"hasPrefix", "hasPrefix(text, prefix)"}, {"hasSuffix", "hasSuffix(text, suffix)"},
		{"toBase64", "toBase64(text)"}, {"fromBase64", "fromBase64(text)"}, {"toJSON", "toJSON(x)"},
		{"fromJSON", "fromJSON(text)"}, {"type", "type(x): int, float, string, bool, array, map, nil.."},
		{"len", "len(x): of a text, a list or a mapping"}, {"all", "all(list, # > 0)"}, {"none", "none(list, # > 0)"},
		{"any", "any(list, # > 0)"}, {"one", "one(list, # > 0): exactly one"},
		{"filter", "filter(list, # > 0): those items"}, {"map", "map(list, # * 2): a list of the results"},
		{"count", "count(list, # > 0)"},
		{"find", "find(list, # > 0): the first such"}, {"findIndex", "findIndex(list, # > 0)"},
		{"findLast", "findLast(list, # > 0)"}, {"findLastIndex", "findLastIndex(list, # > 0)"},
		{"reduce", "reduce(list, #acc + #, 0)"}, {"groupBy", "groupBy(list, .name): a mapping of lists"},
		{"sortBy", "sortBy(list, .name)"}, {"sort", "sort(list)"}, {"reverse", "reverse(list)"},
		{"uniq", "uniq(list): each item once"}, {"concat", "concat(list, list..)"},
		{"flatten", "flatten(list of lists)"}, {"first", "first(list)"}, {"last", "last(list)"},
		{"take", "take(list, n): the first n"},
		{"get", "get(x, key): nil where there is none"}, {"keys", "keys(mapping)"}, {"values", "values(mapping)"},
		{"toPairs", "toPairs(mapping)"}, {"fromPairs", "fromPairs(list)"},
		{
			"duration",
			"duration(text): a time of a text; one that is known is written 250ms; a time has .Seconds(), " +
				".Milliseconds(), .Microseconds(), .Nanoseconds()",
		},
		{"date", "date(\"2026-01-02\"): a day, or a time of one"}, {"timezone", "timezone(\"UTC\")"},
	}
}

// override replaces functions of the library that take unsigned integers for signed ones, or do not support times.
func override(table conf.FunctionsTable) {
	for name, of := range map[string]func(x, y uint64) uint64{
		"bitand": func(x, y uint64) uint64 { return x & y }, "bitor": func(x, y uint64) uint64 { return x | y },
		"bitxor": func(x, y uint64) uint64 { return x ^ y }, "bitnand": func(x, y uint64) uint64 { return x &^ y },
	} {
		table[name] = bitFunction(name, 2, func(values []any) (any, error) {
			return pattern(of(Bits(values[0]), Bits(values[1])), values), nil
		})
	}
	table["bitnot"] = bitFunction("bitnot", 1, func(values []any) (any, error) {
		if n, signed := values[0].(int); signed {
			return ^n, nil
		}
		return narrow(^Bits(values[0])), nil
	})
	for _, name := range []string{"bitshl", "bitshr", "bitushr"} {
		table[name] = bitFunction(name, 2, func(values []any) (any, error) {
			return shifted(name, values[0], values[1])
		})
	}
	for name, operator := range map[string]string{"max": ">", "min": "<"} {
		table[name] = extreme(builtins()[name], operator)
	}
	table["abs"], table["int"] = absolute(builtins()["abs"]), toInteger(builtins()["int"])
}

// bitFunction is a function of integers, signed or not.
func bitFunction(name string, count int, of func(values []any) (any, error)) *builtin.Function {
	return &builtin.Function{
		Name: name,
		Func: func(values ...any) (any, error) {
			for _, value := range values {
				if Exact(value) == nil {
					return nil, fmt.Errorf("%s is for integers, and this is %s", name, Word(value))
				}
			}
			return of(values)
		},
		Validate: func(kinds []reflect.Type) (reflect.Type, error) {
			if len(kinds) != count {
				return nil, fmt.Errorf("%s has %d arguments, and these are %d", name, count, len(kinds))
			}
			for _, kind := range kinds {
				if kind.Kind() != reflect.Interface && kind != wide && kind.Kind() != reflect.Int {
					return nil, fmt.Errorf("%s is for integers, and this is %s", name, typeWord(kind))
				}
			}
			return reflect.TypeFor[any](), nil
		},
	}
}

// Bits are those of an integer, with a sign or without; none of anything else.
func Bits(value any) uint64 {
	if n, signed := value.(int); signed {
		return uint64(n)
	}
	n, _ := value.(uint64)
	return n
}

// pattern is the result of a function of bits: with a sign only where an argument had one.
func pattern(result uint64, of []any) any {
	for _, value := range of {
		if n, signed := value.(int); signed && n < 0 {
			return int(result)
		}
	}
	return narrow(result)
}

func shifted(name string, value, by any) (any, error) {
	count, signed := by.(int)
	if !signed || count < 0 {
		return nil, fmt.Errorf("%s by %v: the count is from 0 on", name, by)
	}
	n, signed := value.(int)
	switch {
	case name == "bitshl":
		return pattern(Bits(value)<<count, []any{value}), nil
	case name == "bitshr" && signed:
		return n >> count, nil
	}
	return narrow(Bits(value) >> count), nil
}

// extreme is max or min, also of integers without a sign and of times.
func extreme(library *builtin.Function, operator string) *builtin.Function {
	own := *library
	own.Func = func(values ...any) (any, error) {
		var best any
		for _, value := range values {
			_, isTime := value.(time.Duration)
			if Exact(value) == nil && !isTime {
				return library.Func(values...)
			}
			if best == nil {
				best = value
				continue
			}
			better, err := compare(operator, value, best)
			if err != nil {
				return nil, err
			}
			if better == true {
				best = value
			}
		}
		return best, nil
	}
	own.Validate = func(kinds []reflect.Type) (reflect.Type, error) {
		for _, kind := range kinds {
			if kind != duration && kind != wide {
				continue
			}
			for _, other := range kinds {
				if other.Kind() != reflect.Interface && (other == duration) != (kind == duration) {
					return nil, fmt.Errorf(
						"%s is of times or of numbers, and these are %s and %s", own.Name, typeWord(kind),
						typeWord(other),
					)
				}
			}
			if kind == duration {
				return duration, nil
			}
			return reflect.TypeFor[any](), nil
		}
		return library.Validate(kinds)
	}
	return &own
}

// absolute is abs, also of a time.
func absolute(library *builtin.Function) *builtin.Function {
	return single(library, func(value any) (any, error) {
		if d, isTime := value.(time.Duration); isTime {
			return d.Abs(), nil
		}
		return library.Fast(value), nil
	})
}

// toInteger is int, which does not make a negative number of one without a sign.
func toInteger(library *builtin.Function) *builtin.Function {
	return single(library, func(value any) (any, error) {
		if n, isWide := value.(uint64); isWide && n > math.MaxInt64 {
			return nil, fmt.Errorf("%d is more than an integer with a sign has, %d", n, math.MaxInt64)
		}
		return library.Fast(value), nil
	})
}

// single is a function of the library of one argument, calculated otherwise.
func single(library *builtin.Function, of func(value any) (any, error)) *builtin.Function {
	own := *library
	own.Fast = nil
	own.Func = func(values ...any) (any, error) {
		if len(values) != 1 {
			return nil, fmt.Errorf("%s has one argument, and these are %d", own.Name, len(values))
		}
		return of(values[0])
	}
	return &own
}

// The library sorts, sums and counts everything as signed integers; these functions use the numbers as they are.

// maxRange is how many numbers ".." makes; the library allows as many (conf.DefaultMemoryBudget).
const maxRange = 1_000_000

// lists adds the functions for "..", sort, sortBy and sum.
func lists(table conf.FunctionsTable) {
	list, ordered := func([]any) []any { return nil }, func([]any, string) []any { return nil }
	add(table, "..", func(ends ...any) (any, error) { return numbers(ends[0], ends[1]) }, func(any, any) []any {
		return nil
	})
	add(
		table, "sort",
		func(arguments ...any) (any, error) { return sorted(arguments, func(value any) any { return value }) }, list,
		ordered,
	)
	add(table, "sortBy", byKey, list, ordered)
	add(table, "sum", func(terms ...any) (any, error) { return total(elements(terms[0])) }, func([]any) any {
		return nil
	})
}

// list replaces sort and sortBy, and sum where its numbers may be unsigned. Their arguments come from the library's
// map, which counts the memory of the list against the limit of an expression. No other call uses that list. For
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
	if !count.IsInt64() || count.Int64() >= maxRange {
		return nil, fmt.Errorf("a range has %d numbers at most", maxRange)
	}
	list := make([]any, count.Int64()+1)
	for i := range list {
		if n, signed := from.(int); signed && n < 0 {
			list[i] = n + i
			continue
		}
		list[i] = narrow(Bits(from) + uint64(i))
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

// byKey sorts elements by their keys.
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
