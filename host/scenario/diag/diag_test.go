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

// TestSuggestShort: of a single letter nothing may be wrong, of two something must be right.
func TestSuggestShort(t *testing.T) {
	words := []string{"a", "rx", "UDP", "nats", "node01"}
	for word, want := range map[string]string{
		"z": "", "A": "a", "tx": "rx", "tz": "", "up": "UDP", "nets": "nats", "node1": "node01", "mode02": "node01",
	} {
		if got := diag.Suggest(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// TestDidYouMean: who wrote the beginning of some words meant one of them, and not another that is near by chance.
func TestDidYouMean(t *testing.T) {
	words := []string{"RC", "UC", "UD", "XRC_SEND", "XRC_RECV", "post_send", "post_recv", "post_read", "post_write"}
	for word, want := range map[string]string{
		"XRC":       `did you mean "XRC_SEND" or "XRC_RECV"?`,
		"xrc":       `did you mean "XRC_SEND" or "XRC_RECV"?`,
		"XRC_SENT":  `did you mean "XRC_SEND"?`,
		"post":      "", // four are too many, and none is near
		"post_sent": `did you mean "post_send"?`,
		"teleport":  "",
	} {
		if got := diag.DidYouMean(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// TestSuggestShortWords: of four letters two may be wrong only behind a beginning that is right.
func TestSuggestShortWords(t *testing.T) {
	words := []string{"color", "sizes", "source", "guest-c", "guest-go"}
	for word, want := range map[string]string{
		"clok": "", "colr": "color", "sise": "sizes", "sauce": "source", "xy": "", "guest-cc": "guest-c",
	} {
		if got := diag.Suggest(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
	for word, want := range map[string]string{"c": `did you mean "guest-c"?`, "go": `did you mean "guest-go"?`} {
		if got := diag.DidYouMean(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

// TestCloseTo: in a dictionary of many words one is near to any, and is not suggested for that.
func TestCloseTo(t *testing.T) {
	words := []string{"NAK", "B", "steps", "flags", "RANGE", "rereg", "post_send", "post_recv", "bandwidth"}
	for word, want := range map[string]string{
		"soak": "", "bw": "", "stress": "", "flaky": "", "hang": "", "rerun": "",
		"flasg": `did you mean "flags"?`, "step": `did you mean "steps"?`, "bandwith": `did you mean "bandwidth"?`,
		"bandwdiht": `did you mean "bandwidth"?`, "post": `did you mean "post_send" or "post_recv"?`,
	} {
		if got := diag.CloseTo(word, words); got != want {
			t.Errorf("%q: got %q, want %q", word, got, want)
		}
	}
}

func TestPosition(t *testing.T) {
	source := diag.NewSource("f", []byte("ab\nhéé x\n\nend"))
	for offset, want := range map[int]diag.Position{
		0: {1, 1}, 1: {1, 2}, 2: {1, 3}, 3: {2, 1}, 4: {2, 2}, 8: {2, 4}, 11: {3, 1}, 12: {4, 1}, 14: {4, 3},
		99: {4, 4}, -1: {1, 1},
	} {
		if got := source.Position(offset); got != want {
			t.Errorf("offset %d: got %v, want %v", offset, got, want)
		}
	}
	if source.Lines() != 4 || source.Line(2) != "héé x" || source.Line(3) != "" || source.Line(5) != "" ||
		source.Line(0) != "" {
		t.Error("lines")
	}
}

// TestOffset holds each position of a file against its byte, in lines that are longer than marks are apart.
func TestOffset(t *testing.T) {
	text := "short\n" + strings.Repeat("aé€😀", 300) + "\n\n" + strings.Repeat("x", 700) + "é\r\nend"
	source := diag.NewSource("f", []byte(text))
	line, column := 1, 1
	for offset, r := range text {
		want := diag.Position{Line: line, Column: column}
		if got := source.Position(offset); got != want {
			t.Fatalf("byte %d is at %v, want %v", offset, got, want)
		}
		if r != '\n' && r != '\r' {
			if got := source.Offset(want); got != offset {
				t.Fatalf("%v is byte %d, want %d", want, got, offset)
			}
		}
		if column++; r == '\n' {
			line, column = line+1, 1
		}
	}
	if source.Characters(2) != 1200 || source.Characters(3) != 0 || source.Characters(4) != 701 ||
		source.Characters(9) != 0 {
		t.Error("characters of lines")
	}
	for place, want := range map[diag.Position]string{
		{Line: 1, Column: 3}: "ort", {Line: 2, Column: 1200}: "😀", {Line: 2, Column: 1201}: "",
		{Line: 2, Column: 9999}: "",
		{Line: 3, Column: 1}:    "", {Line: 4, Column: 701}: "é", {Line: 5, Column: 1}: "end", {Line: 9, Column: 1}: "",
	} {
		if got := source.Rest(place); got != want {
			t.Errorf("behind %v is %q, want %q", place, got, want)
		}
	}
}

// TestUntil leaves the work at its limit of errors; warnings do not count, and other panics pass.
func TestUntil(t *testing.T) {
	source := diag.NewSource("f", []byte(strings.Repeat("x\n", 100)))
	var list diag.List
	done := 0
	list.Until(10, func() {
		for done = range 50 {
			list.Report(diag.RetryCountLarge, source.At(diag.Position{Line: done + 1, Column: 1}, 1), "w")
			list.Report(diag.UnknownRole, source.At(diag.Position{Line: done + 1, Column: 1}, 1), "e")
		}
	})
	if done != 10 || list.Len() != 10 || list.Warnings() != 11 || !list.Cut() {
		t.Errorf("after %d: %d errors, %d warnings, cut %v", done, list.Len(), list.Warnings(), list.Cut())
	}
	var all diag.List
	all.Join(&list)
	if all.Len() != 10 || !all.Cut() {
		t.Errorf("joined: %d, cut %v", all.Len(), all.Cut())
	}
	defer func() {
		if cause := recover(); cause != "a bug" {
			t.Errorf("recovered %v", cause)
		}
	}()
	all.Until(10, func() { panic("a bug") })
}

func TestText(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, test := range map[string]struct {
		line          string
		column, width int
		want          string
	}{
		"short":    {"role: sever", 7, 5, "    1 | role: sever\n      |       ^~~~~\n"},
		"no width": {"role: sever", 1, 0, "    1 | role: sever\n      | ^\n"},
		"beyond":   {"ab", 9, 5, "    1 | ab\n      |   ^\n"},
		"tab":      {"\tx", 2, 1, "    1 |  x\n      |  ^\n"},
		"control":  {"a\x1b[1mb", 2, 1, "    1 | a␛[1mb\n      |  ^\n"},
		"long, at end": {
			long + "!", 301, 1,
			"    1 | ..." + strings.Repeat("x", 116) + "!\n      | " + strings.Repeat(" ", 119) + "^\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			source := diag.NewSource("f.yaml", []byte(test.line+"\n"))
			d := &diag.Diagnostic{
				Problem: diag.Problem{Code: diag.UnknownRole, Message: "m"},
				Span:    source.At(diag.Position{Line: 1, Column: test.column}, test.width),
			}
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
	if !strings.HasSuffix(text.String(), "... and 13 more; fix these first\n") {
		t.Error(text.String())
	}
}

// A hostile file has a hundred thousand names, or long ones, and errors for each.
func TestThereAreIsBounded(t *testing.T) {
	for text, names := range map[string][]string{
		"there are: one, two":            {"one", "two"},
		"there are: one, and 2 more":     {"one", strings.Repeat("x", 1<<20), "two"},
		"there are: and 1 more":          {strings.Repeat("x", 1<<20)},
		"and 99880 more":                 make([]string, 100_000),
		"there are: REMOTE_WRITE, LOCAL": {"REMOTE_WRITE", "LOCAL"},
	} {
		if got := diag.ThereAre(names); !strings.HasSuffix(got, text) || len(got) > 5000 {
			t.Errorf("%d bytes, want %q at the end of %.200q", len(got), text, got)
		}
	}
}
