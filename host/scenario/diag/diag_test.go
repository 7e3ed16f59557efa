package diag_test

import (
	"strings"
	"testing"

	"rdmarun/host/scenario/diag"
)

func TestSuggest(t *testing.T) {
	words := []string{"connect", "disconnect", "wait_event", "poll", "log", "REMOTE_WRITE"}
	for word, want := range map[string]string{
		"conect":       "connect",
		"conenct":      "connect",
		"discconnect":  "disconnect",
		"wait-event":   "wait_event",
		"lgo":          "log",
		"pol":          "poll",
		"remote_write": "REMOTE_WRITE",
		"teleport":     "",
		"x":            "",
		"":             "",
	} {
		if got := diag.Suggest(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestPosition(t *testing.T) {
	source := diag.NewSource("f", []byte("ab\nhéé x\n\nend"))
	for offset, want := range map[int]diag.Position{
		0: {1, 1}, 1: {1, 2}, 2: {1, 3}, 3: {2, 1}, 4: {2, 2}, 8: {2, 4}, 11: {3, 1}, 12: {4, 1}, 14: {4, 3}, 99: {4, 4}, -1: {1, 1},
	} {
		if got := source.Position(offset); got != want {
			t.Errorf("offset %d: got %v, want %v", offset, got, want)
		}
	}
	if source.Lines() != 4 || source.Line(2) != "héé x" || source.Line(3) != "" || source.Line(5) != "" || source.Line(0) != "" {
		t.Error("lines")
	}
}

func TestText(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		line          string
		column, width int
		want          string
	}{
		"short":        {"role: sever", 7, 5, "    1 | role: sever\n      |       ^~~~~\n"},
		"no width":     {"role: sever", 1, 0, "    1 | role: sever\n      | ^\n"},
		"beyond":       {"ab", 9, 5, "    1 | ab\n      |   ^\n"},
		"tab":          {"\tx", 2, 1, "    1 |  x\n      |  ^\n"},
		"control":      {"a\x1b[1mb", 2, 1, "    1 | a·[1mb\n      |  ^\n"},
		"long, at end": {long + "!", 301, 1, "    1 | ..." + strings.Repeat("x", 116) + "!\n      | " + strings.Repeat(" ", 119) + "^\n"},
	} {
		t.Run(name, func(t *testing.T) {
			source := diag.NewSource("f.yaml", []byte(test.line+"\n"))
			d := &diag.Diagnostic{Code: diag.UnknownRole, Span: source.At(diag.Position{Line: 1, Column: test.column}, test.width), Message: "m"}
			_, got, _ := strings.Cut(d.Text(diag.Painter{}), "\n")
			if got != test.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, test.want)
			}
		})
	}
}

func TestList(t *testing.T) {
	a, b := diag.NewSource("a", []byte("x\ny\n")), diag.NewSource("b", []byte("x\n"))
	var list diag.List
	list.Report(diag.UnknownRole, b.Start(), "third")
	list.Report(diag.UnknownRole, a.At(diag.Position{Line: 2, Column: 1}, 1), "second").WithHint("do %s", "this")
	list.Report(diag.UnknownRole, a.Start(), "first")
	list.Report(diag.UnknownRole, a.Start(), "first")
	if list.Len() != 3 {
		t.Errorf("%d diagnostics: the same one twice must count once", list.Len())
	}
	var order []string
	for _, d := range list.Sorted() {
		order = append(order, d.Message)
	}
	if strings.Join(order, " ") != "first second third" {
		t.Error(order)
	}
	for range 60 {
		list.Report(diag.UnknownRole, b.Start(), "more %d", list.Len())
	}
	var text strings.Builder
	if err := list.Render(&text, diag.Painter{}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(text.String(), "... and 13 more; mend these first\n") {
		t.Error(text.String())
	}
}
