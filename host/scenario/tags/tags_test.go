package tags

import (
	"strings"
	"testing"
)

func TestMatches(t *testing.T) {
	tests := []struct {
		text, tags string
		want       bool
	}{
		{"smoke", "smoke slow", true},
		{"smoke", "slow", false},
		{"smoke && !slow", "smoke", true},
		{"smoke && !slow", "smoke slow", false},
		{"smoke&&!slow", "smoke", true},
		{"a || b && c", "a", true},
		{"a || b && c", "b", false},
		{"(a || b) && c", "a", false},
		{"(a || b) && c", "b c", true},
		{"!(a || b)", "", true},
		{"!!a", "a", true},
		{"cm-timers", "cm-timers", true},
		{"rc.read/2", "rc.read/2", true},
		{"a and not (b or c)", "a", true},
		{"a and not (b or c)", "a c", false},
		{"android", "android", true},
	}
	for _, test := range tests {
		e, err := Parse(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if got := e.Matches(strings.Fields(test.tags)); got != test.want {
			t.Errorf("%s on [%s]: %v", test.text, test.tags, got)
		}
	}
	if !(*Expression)(nil).Matches(nil) {
		t.Error("no expression selects all")
	}
}

func TestWithin(t *testing.T) {
	for text, want := range map[string]bool{
		"RPING": true, "ping && yaml": true, "not tcp": true, "ping and tcp": false,
	} {
		e, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Within("scenarios/rping.yaml::rping"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func TestWords(t *testing.T) {
	e, err := Parse("smoke and !(slow || rc.read/2)")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(e.Words(), " "); got != "smoke slow rc.read/2" {
		t.Error(got)
	}
	if (*Expression)(nil).Words() != nil {
		t.Error("no expression has words")
	}
}

func TestErrors(t *testing.T) {
	tests := map[string]string{
		"":                                 "at character 1: a word is missing",
		"a &&":                             "at character 5: a word is missing",
		"&& a":                             `at character 1: a word is missing before "&&"`,
		"a b":                              `at character 3: "b" is not expected here; join words by && or ||`,
		"a & b":                            `at character 3: "&" is not expected here`,
		"(a || b":                          "at character 1: this ( is never closed",
		"a)":                               `at character 2: ")" is not expected here`,
		"a !b":                             `at character 3: "!" is not expected here`,
		strings.Repeat("(", 100_000) + "a": "nested too deep",
		strings.Repeat("!", 100_000) + "a": "nested too deep",
	}
	for text, want := range tests {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %.200v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"smoke && !slow", "(a||b)&&c", "!", "((", "a b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if e, err := Parse(text); err == nil {
			e.Matches([]string{"a"})
		}
	})
}
