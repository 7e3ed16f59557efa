package expression

import (
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
)

// override adds functions that expressions have instead of the library's, which take integers without a sign for such
// with one, or know no times.
func override(table conf.FunctionsTable) {
	for name, of := range map[string]func(x, y uint64) uint64{
		"bitand": func(x, y uint64) uint64 { return x & y }, "bitor": func(x, y uint64) uint64 { return x | y },
		"bitxor": func(x, y uint64) uint64 { return x ^ y }, "bitnand": func(x, y uint64) uint64 { return x &^ y },
	} {
		table[name] = bitFunction(name, 2, func(values []any) (any, error) {
			return pattern(of(bitsOf(values[0]), bitsOf(values[1])), values), nil
		})
	}
	table["bitnot"] = bitFunction("bitnot", 1, func(values []any) (any, error) {
		if n, signed := values[0].(int); signed {
			return ^n, nil
		}
		return narrow(^bitsOf(values[0])), nil
	})
	for _, name := range []string{"bitshl", "bitshr", "bitushr"} {
		table[name] = bitFunction(name, 2, func(values []any) (any, error) { return shifted(name, values[0], values[1]) })
	}
	for name, operator := range map[string]string{"max": ">", "min": "<"} {
		table[name] = extreme(builtins()[name], operator)
	}
	table["abs"], table["int"] = absolute(builtins()["abs"]), toInteger(builtins()["int"])
}

// bitFunction is a function of integers, whatever their sign.
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

func bitsOf(value any) uint64 {
	if n, signed := value.(int); signed {
		return uint64(n)
	}
	return value.(uint64)
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
		return pattern(bitsOf(value)<<count, []any{value}), nil
	case name == "bitshr" && signed:
		return n >> count, nil
	}
	return narrow(bitsOf(value) >> count), nil
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
					return nil, fmt.Errorf("%s is of times or of numbers, and these are %s and %s", own.Name, typeWord(kind), typeWord(other))
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
