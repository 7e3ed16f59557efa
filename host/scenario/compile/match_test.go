package compile

import (
	"regexp"
	"testing"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/verb"
)

func TestMatchers(t *testing.T) {
	data := func(text string) any { return verb.DataValue{Bytes: []byte(text)} }
	for name, test := range map[string]struct {
		operator string
		operands []any
		got      any
		holds    bool
		words    string
	}{
		"eq":               {"eq", []any{3}, 3, true, "3"},
		"eq, not":          {"eq", []any{3}, 4, false, "3"},
		"eq, no value":     {"eq", []any{"RECV"}, nil, false, "RECV"},
		"ne":               {"ne", []any{0}, 28, true, "anything but 0"},
		"lt":               {"lt", []any{3}, 2, true, "less than 3"},
		"le":               {"le", []any{3}, 3, true, "at most 3"},
		"gt":               {"gt", []any{3}, 3, false, "more than 3"},
		"ge":               {"ge", []any{9}, 9, true, "at least 9"},
		"between":          {"between", []any{1, 5}, 5, true, "between 1 and 5"},
		"between, outside": {"between", []any{1, 5}, 6, false, "between 1 and 5"},
		"any_of": {
			"any_of", []any{28, -111}, -111, true, "one of 28 (CONSUMER_DEFINED), -111 (ECONNREFUSED)",
		},
		"any_of, none": {
			"any_of", []any{28, -111}, 8, false, "one of 28 (CONSUMER_DEFINED), -111 (ECONNREFUSED)",
		},
		"prefix": {
			"prefix", []any{data("hello")}, []byte("hello, v1\x00\x00"), true, `something that begins with "hello"`,
		},
		"prefix, not": {
			"prefix", []any{data("hello")}, []byte("hell"), false, `something that begins with "hello"`,
		},
		"padded": {
			"padded", []any{data("hello")}, []byte("hello\x00\x00"), true, `"hello" and then zeros only`,
		},
		"padded, exactly": {"padded", []any{data("hello")}, []byte("hello"), true, `"hello" and then zeros only`},
		"padded, longer": {
			"padded", []any{data("hello")}, []byte("hello, v1\x00"), false, `"hello" and then zeros only`,
		},
		"padded, after zeros": {
			"padded", []any{data("hello")}, []byte("hello\x00\x00v"), false, `"hello" and then zeros only`,
		},
		"padded, shorter": {"padded", []any{data("hello")}, []byte("hell"), false, `"hello" and then zeros only`},
		"padded, other": {
			"padded", []any{data("hello")}, []byte("jello\x00"), false, `"hello" and then zeros only`,
		},
		"padded, nothing":  {"padded", []any{data("")}, make([]byte, 56), true, `"" and then zeros only`},
		"padded, no value": {"padded", []any{data("")}, nil, false, `"" and then zeros only`},
		"data":             {"eq", []any{data("ab")}, []byte("ab"), true, `"ab"`},
		"data, padded":     {"eq", []any{data("ab")}, []byte("ab\x00"), false, `"ab"`},
		"re": {
			"re", []any{regexp.MustCompile("^v[0-9]")}, []byte("v1 "), true, "something like /^v[0-9]/",
		},
		"approx":           {"approx", []any{100, percent(5)}, 95, true, "100 ± 5%"},
		"approx, outside":  {"approx", []any{100, percent(5)}, 94, false, "100 ± 5%"},
		"approx, negative": {"approx", []any{-100, percent(10)}, -109, true, "-100 (ENETDOWN) ± 10%"},
		"approx with duration": {
			"approx", []any{time.Second, time.Millisecond}, 999 * time.Millisecond, true, "1s ± 1ms",
		},
	} {
		t.Run(name, func(t *testing.T) {
			operands := make([]*Value, len(test.operands))
			for i, operand := range test.operands {
				operands[i] = constant(operand, diag.Span{})
			}
			kind := verb.Integer
			if name == "any_of" || name == "any_of, none" || name == "approx, negative" {
				kind = verb.Status
			}
			e := Expectation{
				Field: "x", Type: kind,
				Conditions: []Condition{{matcher: row(matchers, test.operator, (*matcher).key), Operands: operands}},
			}
			ok, want, err := e.Check(nil, test.got)
			if err != nil || ok != test.holds {
				t.Errorf("got %v, %v", ok, err)
			}
			if words := row(
				matchers, test.operator, (*matcher).key,
			).describe(test.operands, e.Show); words != test.words || (!ok && want != test.words) {
				t.Errorf("words %q, %q, want %q", words, want, test.words)
			}
		})
	}
}

func TestShow(t *testing.T) {
	for want, test := range map[string]struct {
		value any
		kind  verb.Type
	}{
		"no value":               {nil, verb.Word},
		"8 (INVALID_SERVICE_ID)": {8, verb.Status},
		"-110 (ETIMEDOUT)":       {-110, verb.Status},
		"0":                      {0, verb.Status},
		`"hi" and 3 zero bytes`:  {[]byte("hi\x00\x00\x00"), verb.Data},
		"4 zero bytes":           {make([]byte, 4), verb.Data},
		"01 02 ff":               {[]byte{1, 2, 255}, verb.Data},
		`"10.0.0.1"`:             {"10.0.0.1", verb.Text},
		`""`:                     {[]byte{}, verb.Data},
	} {
		if got := Show(test.value, test.kind); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestLimitShow: a threshold shows what was found as tables do, and all its digits where it would look like the limit.
func TestLimitShow(t *testing.T) {
	for _, test := range []struct {
		unit       unit
		got, bound float64
		want       string
	}{
		{bitsPerSecond, 113_600_000, 1e9, "114 Mbit/s"}, {bitsPerSecond, 0, 1, "0 bit/s"},
		{bitsPerSecond, 85_300_000_000, 1, "85.3 Gbit/s"},
		{bitsPerSecond, 99_960_000_000, 1e11, "99.96Gbit/s"},
		{perSecond, 16_750, 1, "16.8 k/s"}, {perSecond, 16_750, 16_800, "16750/s"},
		{nanoseconds, 1_318_911, 1e6, "1.32 ms"}, {nanoseconds, 1_318_911, 1_320_000, "1.318911ms"},
		{nanoseconds, 1_320_000, 1_320_000, "1.32 ms"}, {nanoseconds, 26_207, 26_000, "26.2 us"},
	} {
		if got := (&Limit{unit: test.unit}).Show(test.got, test.bound); got != test.want {
			t.Errorf("%v: %s, want %s", test.got, got, test.want)
		}
	}
}
