package expression_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
)

func TestScan(t *testing.T) {
	for text, want := range map[string][]expression.Piece{
		"plain":              {{Text: "plain"}},
		"":                   nil,
		"$(a)":               {{Text: "a", Expression: true, Offset: 2}},
		"x $(a + (b)) y":     {{Text: "x "}, {Text: "a + (b)", Expression: true, Offset: 4}, {Text: " y", Offset: 12}},
		"$$(a) costs $5":     {{Text: "$(a) costs $5"}},
		"$(f(')'))":          {{Text: "f(')')", Expression: true, Offset: 2}},
		"$(\"\\\")\" + `)`)": {{Text: "\"\\\")\" + `)`", Expression: true, Offset: 2}},
		"$(a)$(b)":           {{Text: "a", Expression: true, Offset: 2}, {Text: "b", Expression: true, Offset: 6}},
	} {
		pieces, unterminated := expression.Scan(text)
		if unterminated >= 0 || !reflect.DeepEqual(pieces, want) {
			t.Errorf("%q: got %+v, want %+v", text, pieces, want)
		}
		if expression.Contains(text) != strings.Contains(strings.ReplaceAll(text, "$$(", ""), "$(") {
			t.Errorf("%q: Contains", text)
		}
	}
	for text, want := range map[string]int{"$(a": 0, "ab $((a)": 3, "$(')": 0} {
		if _, got := expression.Scan(text); got != want {
			t.Errorf("%q: unterminated at %d, want %d", text, got, want)
		}
	}
}

type view struct {
	Addr int `expr:"addr"`
}

var names = expression.Names{
	"i": expression.Integer, "word": expression.String, "on": expression.Boolean,
	"pause":  expression.TypeOf(time.Duration(0)),
	"adv":    expression.Object{"addr": expression.Integer, "rkey": expression.Integer},
	"server": expression.Object{"rx": expression.Object{"addr": expression.Integer}},
	"call":   expression.TypeOf(func(string) (view, error) { return view{}, nil }),
}

func TestErrors(t *testing.T) {
	for source, want := range map[string]expression.Error{
		"sise":           {diag.Problem{Code: diag.UndefinedName}, 0, 4},
		"1 + wrd":        {diag.Problem{Code: diag.UndefinedName, Hint: `did you mean "word"?`}, 4, 7},
		"adv.adr":        {diag.Problem{Code: diag.UndefinedMember, Hint: `did you mean "addr"?`}, 4, 7},
		"server.tx.addr": {diag.Problem{Code: diag.UndefinedMember, Hint: `did you mean "rx"?`}, 7, 9},
		"call(word).adr": {diag.Problem{Code: diag.UndefinedMember, Hint: `did you mean "addr"?`}, 11, 14},
		"i + ":           {diag.Problem{Code: diag.ExpressionSyntax}, 0, 0},
		"word + i":       {diag.Problem{Code: diag.ExpressionType}, 5, 6},
		"2 ^ 3 == 8":     {diag.Problem{Code: diag.PowerOperator}, 0, 0},
		"i ^ 2": {
			diag.Problem{Code: diag.PowerOperator, Hint: "bitxor(a, b) is the exclusive or, ** the power"}, 0, 0,
		},
		"'é' + sise": {diag.Problem{Code: diag.UndefinedName}, 7, 11},
		"now()":      {diag.Problem{Code: diag.UndefinedName}, 0, 3},
		"i ? 1 : 2":  {diag.Problem{Code: diag.ExpressionType}, 0, 0},
	} {
		_, bad := expression.Compile(source, names, nil)
		if bad == nil {
			t.Errorf("%q: no error", source)
			continue
		}
		if bad.Code != want.Code || (want.To > 0 && (bad.From != want.From || bad.To != want.To)) ||
			(want.Hint != "" && bad.Hint != want.Hint) {
			t.Errorf("%q: got %+v, want %+v", source, *bad, want)
		}
		if strings.Contains(bad.Message, "interface") || strings.Contains(bad.Message, "\n") {
			t.Errorf("%q: not for people: %s", source, bad.Message)
		}
	}
}

func TestRun(t *testing.T) {
	env := expression.Env{
		"i": 3, "word": "rx", "on": true, "pause": time.Second, "adv": map[string]any{"addr": 16, "rkey": 1},
		"server": map[string]any{"rx": map[string]any{"addr": 4096}},
		"call":   func(name string) (view, error) { return view{len(name)}, nil },
	}
	for source, want := range map[string]any{
		"i + 1": 4, "on ? 'a' : 'b'": "a", "pause * 2": 2 * time.Second, "adv.addr": 16, "server.rx.addr + 1": 4097,
		"server[word].addr": 4096,
		"call(word).addr":   2, "bitxor(adv.rkey, 1)": 0, "word == 'rx' && i > 2": true, "0x10 + i": 19, "i ?? 1": 3,
	} {
		program, bad := expression.Compile(source, names, nil)
		if bad != nil {
			t.Errorf("%q: %v", source, bad)
			continue
		}
		if got, err := program.Run(env); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", source, got, err, want)
		}
		if _, known := program.Constant(); known {
			t.Errorf("%q is no constant", source)
		}
	}
	program, _ := expression.Compile("adv.addr", names, nil)
	if _, err := program.Run(expression.Env{}); err == nil || !strings.Contains(err.Error(), "has not run") {
		t.Error(err)
	}
}

func TestConstants(t *testing.T) {
	constants := expression.Env{"i": 5, "word": "rx"}
	for source, want := range map[string]any{"i * 2": 10, "'a' + word": "arx", "1 + 2": 3} {
		program, bad := expression.Compile(source, names, constants)
		if bad != nil {
			t.Fatal(bad)
		}
		if got, known := program.Constant(); !known || got != want {
			t.Errorf("%q: got %v %v, want %v", source, got, known, want)
		}
	}
	program, _ := expression.Compile("call(word).addr + i", names, constants)
	if _, known := program.Constant(); known {
		t.Error("a call is no constant")
	}
	if _, bad := expression.Compile("[1, 2][i]", names, constants); bad == nil || bad.Code != diag.Evaluation {
		t.Errorf("%+v", bad)
	}
}

func TestOperands(t *testing.T) {
	env := expression.Env{"i": 3, "word": "rx", "on": true, "none": map[string]any(nil), "list": []any{1, 2}}
	for source, want := range map[string]string{
		"i * 2 == 7 && word != 'rx'":            "i * 2=6 word=rx",
		"!(on || i == 3)":                       "on=true i=3",
		"i > 5 and i < 10 and i in [1, 2]":      "i=3",
		"-1 == 1":                               "",
		"all(list, # > 1)":                      "",
		"none.addr.x == 1 || len(list) == 3":    "len(list)=2",
		"word contains 'y' or word matches 'z'": "word=rx",
		"i ==":                                  "",
	} {
		var got []string
		for _, operand := range expression.Operands(source, env) {
			got = append(got, fmt.Sprintf("%s=%v", operand.Text, operand.Value))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%q: got %q, want %q", source, text, want)
		}
	}
}
