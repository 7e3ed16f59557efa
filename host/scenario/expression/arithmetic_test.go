package expression_test

import (
	"math"
	"testing"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
)

// given are values that expressions of these tests have; later has a type that only the run knows.
var given = expression.Env{
	"all": uint64(math.MaxUint64), "half": uint64(1 << 63), "one": uint64(1), "n": 3, "took": 4 * time.Millisecond,
	"later": any(uint64(math.MaxUint64)), "laterTook": any(4 * time.Millisecond),
}

func givenNames() expression.Names {
	names := expression.Names{"later": expression.Any, "laterTook": expression.Any}
	for name, value := range given {
		if names[name] == nil {
			names[name] = expression.TypeOf(value)
		}
	}
	return names
}

// TestValues has each expression twice: calculated while running, and before, of constants.
func TestValues(t *testing.T) {
	const top = uint64(math.MaxUint64)
	for source, want := range map[string]any{
		// Sizes and times.
		"4KiB": 4096, "2 * 64KiB": 131072, "1.5MiB": 3 << 19, "4kB + 1B": 4001, "1MiB / 4KiB": 256.0,
		"[1KiB, 2KiB][1]": 2048,
		"655.36ms":        655360 * time.Microsecond, "n * 655.36ms": 1966080 * time.Microsecond,
		"0.5 * took": 2 * time.Millisecond, "took * 0.5": 2 * time.Millisecond,
		"1m30s + 500ms": 90500 * time.Millisecond, "took - 5ms": -time.Millisecond, "took / 2": 2 * time.Millisecond,
		"took / 1ms": 4.0, "10ms % took": 2 * time.Millisecond,
		"took < 5ms": true, "5ms <= took": false, "took == 4ms": true, "took != 4000us": false,
		"-took": -4 * time.Millisecond, "laterTook < 5ms": true,
		"laterTook * n": 12 * time.Millisecond, "laterTook / 8": 500 * time.Microsecond, "n > 2 ? 1s : 2s": time.Second,
		"5s.Seconds()":   5.0,
		"max(took, 5ms)": 5 * time.Millisecond, "min(took, 5ms, laterTook)": 4 * time.Millisecond,
		"abs(took - 5ms)":              time.Millisecond,
		"let slot = 2 * 5us; slot * n": 30 * time.Microsecond, "map(1..3, # * 1ms)[2]": 3 * time.Millisecond,
		"7µs": 7 * time.Microsecond,
		// What looks like a number with a unit, and is none.
		"'4KiB'": "4KiB", "\"5 ms\" + `6ms`": "5 ms6ms", "0x1f": 31, "1e3": 1000.0, "1e+3": 1000.0, "1_000": 1000,
		"len(1..4)": 4, "1 /* 5furlongs */ + 1": 2,
		// Integers without a sign.
		"0xffffffffffffffff": top, "18446744073709551615": top, "0xffffffffffffffff == all": true, "all": top,
		"all - 1": top - 1, "later - 1": top - 1,
		"all > n": true, "n < later": true, "all < 0": false, "half > 9223372036854775807": true, "all >= half": true,
		"later <= all": true, "half <= 0x7fffffffffffffff": false,
		"one - 2": -1, "-one": -1, "one + n": 4, "half * 2": 0, "all + 1": 0, "half + (half - 1)": top, "all % 10": 5,
		"later % 10": 5, "all / 2": 9223372036854775807.5,
		"(later - 5) % 7": 3, "let x = all - 1; x > half": true, "max(all, n)": top,
		"min([all, half])": uint64(1 << 63), "max(n, half, all - 1)": top - 1,
		"filter([all, one], # > 5)[0]": top, "string(all)": "18446744073709551615", "int(one)": 1,
		"bitand(all, 0xff)": 255, "bitand(all, bitnot(one))": top - 1, "bitor(half, 1)": uint64(1<<63 + 1),
		"bitxor(all, all)": 0, "bitnand(all, half)": math.MaxInt64,
		"bitnot(0)": -1, "bitnot(all)": 0, "bitshl(1, 63)": uint64(1 << 63), "bitshl(1, 64)": 0, "bitshr(all, 60)": 15,
		"bitshr(-16, 2)": -4, "bitushr(-1, 60)": 15, "bitand(-1, -2)": -2,
		// Lists of them.
		"sort([all, 1, half, 5])[3]": top, "sort([all, 1, half, 5])[0]": 1, "sort([1, later, half], 'desc')[0]": top,
		"sort([3, 1, 2])[0]": 1, "sort(['b', 'a'])[0]": "a",
		"sort([half, 1.5])[0]": 1.5, "sort([2ms, 1ms])[0]": time.Millisecond, "len(sort([]))": 0,
		"sortBy([{'a': all}, {'a': 1}, {'a': half}], .a)[2].a": top, "sortBy([all, one, half], # - 1)[2]": top,
		"sortBy([all, one, half], #, 'desc')[2]": uint64(1), "sortBy([1, 3, 2], #, 'desc')[0]": 3,
		"sortBy(sortBy(['b', 'c', 'a'], #), len(#))[0]":                 "a",
		"first(sortBy([{'a': 2, 'b': 'x'}, {'a': 1, 'b': 'y'}], .a)).b": "y", "map(sortBy([2, 1], #), # * 2)[0]": 2,
		"(half - 1..half + 1)[2]": uint64(1<<63 + 1), "len(half..all - (half - 3))": 3, "(all - 1..all)[1]": top,
		"(later..later)[0]": top, "len(all..1)": 0, "(-2..one)[3]": 1,
		"len(-1..one)": 3, "sum(1..4)": 10, "all in half..half + 2": false, "half + 1 in half..half + 2": true,
		"sum([half - 1, half])": top, "sum([later, 1])": 0, "sum([all - 1, one])": top,
		"sum([{'a': half}, {'a': 1}], .a)": uint64(1<<63 + 1), "sum([1ms, took])": 5 * time.Millisecond,
		"sum([])": 0, "sum([1.5, 2])": 3.5, "sum([1, 2], # * 2)": 6,
	} {
		for way, constants := range map[string]expression.Env{"while running": nil, "before": given} {
			program, bad := expression.Compile(source, givenNames(), constants)
			if bad != nil {
				t.Errorf("%s, %s: %s", source, way, bad.Message)
				continue
			}
			if got, err := program.Run(given); err != nil || got != want {
				t.Errorf("%s, %s: %T %v, %v, want %T %v", source, way, got, got, err, want, want)
			}
		}
	}
}

func TestNonsenseWithUnits(t *testing.T) {
	for source, want := range map[string]expression.Error{
		"4KiB + 1s": {
			diag.Problem{
				Code: diag.ExpressionType, Message: `"+" does not go between an integer and a duration`,
				Hint: "a time has its unit: 5ms; d / 1ms is a number",
			},
			5, 6,
		},
		"took < 5": {
			diag.Problem{
				Code: diag.ExpressionType, Message: `"<" does not go between a duration and an integer`,
				Hint: "a time has its unit: 5ms; d / 1ms is a number",
			},
			5, 6,
		},
		"took == 5": {
			diag.Problem{
				Code: diag.ExpressionType, Message: `"==" does not go between a duration and an integer`,
				Hint: "a time has its unit: 5ms; d / 1ms is a number",
			},
			5, 7,
		},
		"took * 2ms": {
			diag.Problem{Code: diag.ExpressionType, Message: `"*" does not go between a duration and a duration`}, 5, 6,
		},
		"n + 4Kib": {
			diag.Problem{
				Code: diag.WrongUnit, Message: `no unit of size is called "Kib"`,
				Hint: "1024 bytes are 1KiB, 1000 bytes 1kB",
			},
			4, 8,
		},
		"n * 5sec": {
			diag.Problem{Code: diag.WrongUnit, Message: `no unit is called "sec"`, Hint: "seconds are written 5s"}, 4,
			8,
		},
		"'µ' == 'm' || 5mz": {
			diag.Problem{Code: diag.WrongUnit, Message: `no unit is called "mz"`, Hint: `did you mean "ms"?`}, 15, 18,
		},
		"3furlongs": {
			diag.Problem{
				Code: diag.WrongUnit, Message: `no unit is called "furlongs"`, Hint: "there are ns, us, ms, s, m, h",
			},
			0, 9,
		},
		"1.3B":           {diag.Problem{Code: diag.WrongUnit, Message: `"1.3B" is not a whole number of bytes`}, 0, 4},
		"99999999999TiB": {diag.Problem{Code: diag.OutOfRange, Message: `"99999999999TiB" is too large`}, 0, 14},
		"4KiB4": {
			diag.Problem{
				Code: diag.ExpressionSyntax, Message: `"4KiB4" is neither a number nor a name`,
				Hint: "a unit follows its number: 4KiB, 250ms",
			},
			0, 5,
		},
		"4KiB wrong": {
			diag.Problem{Code: diag.ExpressionSyntax, Message: `unexpected token Identifier("wrong")`}, 5, 10,
		},
		"wrong 4KiB": {
			diag.Problem{Code: diag.ExpressionSyntax, Message: `unexpected token Identifier("4KiB")`}, 6, 10,
		},
		"max(took, n)": {
			diag.Problem{
				Code:    diag.ExpressionType,
				Message: "max is of times or of numbers, and these are a duration and an integer",
			},
			0, 3,
		},
		"bitand(took, 1)": {
			diag.Problem{Code: diag.ExpressionType, Message: "bitand is for integers, and this is a duration"}, 0, 6,
		},
	} {
		_, bad := expression.Compile(source, givenNames(), nil)
		if bad == nil {
			t.Errorf("%s is taken", source)
		} else if want.To == 0 || *bad != want {
			t.Errorf("%s:\n got %+v\nwant %+v", source, *bad, want)
		}
	}
	for source, want := range map[string]string{
		"laterTook + n":           `"+" does not go between a duration and an integer`,
		"later < 5ms":             `"<" does not go between an integer and a duration`,
		"n / laterTook":           `"/" does not go between an integer and a duration`,
		"took / (n - 3)":          "the result is not a time: it is beyond 292 years, or a division by 0",
		"took % 0ms":              "a division by no time",
		"later % (n - 3)":         "a division by zero",
		"n % (n - 3)":             "a division by zero",
		"int(all)":                "18446744073709551615 is more than an integer with a sign has, 9223372036854775807",
		"bitshl(1, -n)":           "bitshl by -3: the count is from 0 on",
		"bitand(laterTook, 1)":    "bitand is for integers, and this is a duration",
		"one..all":                "a range has 1000000 numbers at most",
		"one..laterTook":          `".." does not go between an integer and a duration`,
		"sort([later, 1ms])":      `"<" does not go between a duration and an integer`,
		"sort([1, later], 'up')":  `the order of a list is "asc" or "desc", and not up`,
		"sum([later, laterTook])": `"+" does not go between an integer and a duration`,
		// What they make counts against what an expression may have.
		"map(1..900000, sort([later, 1, 2, 3]))": "its lists have more than 1000000 items together: take a " +
			"shorter range, or a loop (repeat, for_each)",
		"map(1..900000, sortBy([later, 1, 2], #))": "its lists have more than 1000000 items together: take a " +
			"shorter range, or a loop (repeat, for_each)",
		"map(1..900000, one..3)": "its lists have more than 1000000 items together: take a " +
			"shorter range, or a loop (repeat, for_each)",
	} {
		program, bad := expression.Compile(source, givenNames(), nil)
		if bad != nil {
			t.Errorf("%s: %s", source, bad.Message)
			continue
		}
		if value, err := program.Run(given); err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v, want %s", source, value, err, want)
		}
	}
}

// An error in an operand is reported, in the library's calculations and in this package's.
func TestErrorsInsideOfReplacedOperators(t *testing.T) {
	names := expression.Names{"facts": expression.Object{"max_sge": expression.Integer, "id": expression.Unsigned}}
	for source, from := range map[string]int{
		"facts.max_sges > 0": 6, "factz > 0": 0, "1 + (facts.ids - 1) * 2": 11, "max(facts.id, factz)": 14,
		"let x = factz + 1; x < 2": 8, "sortBy([1, 2], factz)": 15, "sort([factz])": 6, "sum([facts.ids])": 11,
		"1..factz": 3,
	} {
		if _, bad := expression.Compile(source, names, nil); bad == nil || bad.From != from {
			t.Errorf("%s: %+v", source, bad)
		}
	}
	if program, bad := expression.Compile("facts.id < 3 ? facts.id : 1ms", names, nil); bad != nil ||
		program.Returns() != "" {
		t.Errorf("%+v", bad)
	}
}
