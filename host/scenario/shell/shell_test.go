package shell

import "testing"

func TestWord(t *testing.T) {
	for word, want := range map[string]string{
		"count=3": "count=3", "": "''", "a b": "'a b'", "it's": `'it'\''s'`,
		"scenarios/rping.yaml": "scenarios/rping.yaml", "a*": "'a*'", "$x": "'$x'",
	} {
		if got := Word(word); got != want {
			t.Errorf("%q: got %s, want %s", word, got, want)
		}
	}
}
