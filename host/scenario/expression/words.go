package expression

// Documented is a function or an operator with what it does.
type Documented struct{ Name, Doc string }

// Operators lists the operators, those that bind least first.
func Operators() []Documented {
	return []Documented{
		{"let", "let half = size / 2; half * 2: a name for the rest of the expression"},
		{"|", "size | max(64): the left side is the function's first argument"},
		{"?:", "condition ? a : b"},
		{"or", "also ||"}, {"||", "also or"}, {"and", "also &&"}, {"&&", "also and"}, {"not", "also !"}, {"!", "also not"},
		{"==", "equal"}, {"!=", "different"}, {"<", "less"}, {"<=", "at most"}, {">", "more"}, {">=", "at least"},
		{"in", "an item of a list, or a key of a mapping: op in ['a', 'b'], size in 1..100; not in"},
		{"contains", "a text in a text"}, {"startsWith", "a text at the beginning of one"}, {"endsWith", "a text at the end of one"},
		{"matches", "a text and a regular expression (of Go)"},
		{"..", "1..4 is [1, 2, 3, 4]"},
		{"+", "sum; also of texts, and of durations"}, {"-", "difference; also of durations"}, {"*", "product; also of a duration and a number: 3 * 655.36ms"}, {"/", "quotient, with its fraction: 1 / 2 is 0.5; of a duration and a number a duration, of two durations a number"},
		{"%", "remainder"}, {"**", "power; ^ is refused, bitxor(a, b) is the exclusive or"},
		{"??", "the right side where the left one is nil"},
		{".", "a member: server.address"}, {"?.", "a member, nil of nil"}, {"[ ]", "an item: list[0], list[-1], text[0:3]"},
	}
}

// Functions lists the functions; predicates name the item #, its members .name.
func Functions() []Documented {
	return []Documented{
		{"abs", "abs(n): without its sign; also of a duration"}, {"ceil", "ceil(f): rounded up"}, {"floor", "floor(f): rounded down"}, {"round", "round(f): to the nearest"},
		{"int", "int(x): an integer of a fraction, which is cut off, or of a text"}, {"float", "float(x): a fraction"},
		{"max", "max(a, b..) or max(list); also of durations"}, {"min", "min(a, b..) or min(list); also of durations"}, {"sum", "sum(list)"}, {"mean", "mean(list)"}, {"median", "median(list)"},
		{"bitand", "bitand(a, b)"}, {"bitor", "bitor(a, b)"}, {"bitxor", "bitxor(a, b)"}, {"bitnand", "bitnand(a, b): a without the bits of b"}, {"bitnot", "bitnot(a)"},
		{"bitshl", "bitshl(a, n): a << n"}, {"bitshr", "bitshr(a, n): a >> n, the sign stays"}, {"bitushr", "bitushr(a, n): a >> n of an unsigned number"},
		{"string", "string(x): as text"}, {"upper", "upper(text)"}, {"lower", "lower(text)"}, {"trim", "trim(text) or trim(text, characters)"},
		{"trimPrefix", "trimPrefix(text, prefix)"}, {"trimSuffix", "trimSuffix(text, suffix)"}, {"replace", "replace(text, old, new)"}, {"repeat", "repeat(text, n)"},
		{"split", "split(text, separator): a list"}, {"splitAfter", "splitAfter(text, separator): a list, the separators stay"}, {"join", "join(list, separator)"},
		{"indexOf", "indexOf(text, part): -1 where there is none"}, {"lastIndexOf", "lastIndexOf(text, part)"},
		{"hasPrefix", "hasPrefix(text, prefix)"}, {"hasSuffix", "hasSuffix(text, suffix)"},
		{"toBase64", "toBase64(text)"}, {"fromBase64", "fromBase64(text)"}, {"toJSON", "toJSON(x)"}, {"fromJSON", "fromJSON(text)"}, {"type", "type(x): int, float, string, bool, array, map, nil.."},
		{"len", "len(x): of a text, a list or a mapping"}, {"all", "all(list, # > 0)"}, {"none", "none(list, # > 0)"}, {"any", "any(list, # > 0)"}, {"one", "one(list, # > 0): exactly one"},
		{"filter", "filter(list, # > 0): those items"}, {"map", "map(list, # * 2): a list of the results"}, {"count", "count(list, # > 0)"},
		{"find", "find(list, # > 0): the first such"}, {"findIndex", "findIndex(list, # > 0)"}, {"findLast", "findLast(list, # > 0)"}, {"findLastIndex", "findLastIndex(list, # > 0)"},
		{"reduce", "reduce(list, #acc + #, 0)"}, {"groupBy", "groupBy(list, .name): a mapping of lists"}, {"sortBy", "sortBy(list, .name)"}, {"sort", "sort(list)"}, {"reverse", "reverse(list)"},
		{"uniq", "uniq(list): each item once"}, {"concat", "concat(list, list..)"}, {"flatten", "flatten(list of lists)"}, {"first", "first(list)"}, {"last", "last(list)"}, {"take", "take(list, n): the first n"},
		{"get", "get(x, key): nil where there is none"}, {"keys", "keys(mapping)"}, {"values", "values(mapping)"}, {"toPairs", "toPairs(mapping)"}, {"fromPairs", "fromPairs(list)"},
		{"duration", "duration(text): a time of a text; one that is known is written 250ms; a time has .Seconds(), .Milliseconds(), .Microseconds(), .Nanoseconds()"},
		{"date", "date(\"2026-01-02\"): a day, or a time of one"}, {"timezone", "timezone(\"UTC\")"},
	}
}
