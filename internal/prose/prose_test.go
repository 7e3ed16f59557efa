package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const source = `package p

import "fmt"

var command = Command{
	Short: "Runs it",
	Long: ` + "`First line,\nsecond line.`" + `,
}

func f(set Set) error {
	set.StringVar(&x, "name", "", "the name; it may be left out")
	use("no text of a message")
	return fmt.Errorf("open %s: it is %-3d bytes", name, 7)
}
`

// Each text is on the line that it has in the source.
func TestTextsOf(t *testing.T) {
	found, err := textsOf("p.go", []byte(source))
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]map[int]string{
		"help":   {6: "Runs it", 7: "First line,", 8: "second line."},
		"flags":  {12: "- the name; it may be left out"},
		"errors": {14: "- open X: it is X bytes"},
	} {
		if got := fmt.Sprint(found[kind]); got != fmt.Sprint(want) {
			t.Errorf("%s: %s, want %v", kind, got, want)
		}
	}
}

// A file of sources gets files of its path, and what an earlier run has left is gone.
func TestExtract(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{
		"a/p.go": source, "a/p_test.go": source, "a/testdata/p.go": source, "out/flags/old.go.md": "- old\n",
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := extract("out", []string{"a"}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("out/*/*")
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(files, " "); got != "out/errors/a out/flags/a out/help/a" {
		t.Error(got)
	}
	text, err := os.ReadFile("out/flags/a/p.go.md")
	if err != nil || string(text) != strings.Repeat("\n", 11)+"- the name; it may be left out\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// The rules of tools/prose find what they are for, and nothing else.
func TestRulesFindBadSentences(t *testing.T) {
	vale, err := filepath.Abs("../../build/vale")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(vale); err != nil {
		t.Skip("make build/vale")
	}
	config, err := filepath.Abs("../../tools/prose/vale.ini")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("word ", 25) + "word."
	for _, c := range []struct{ file, text, rule string }{
		{"docs/page.md", "The peer is bereft of its queue.", "Words"},
		{"docs/page.md", "Three packets were doubled.", "Words"},
		{"docs/page.md", "Times are held against the baseline.", "Words"},
		{"docs/page.md", "This is no record.", "Words"},
		{"docs/page.md", "The times are the wall's.", "Words"},
		{"docs/page.md", "The file belongs into the folder.", "Words"},
		{"docs/page.md", "There is no record of it. The owner is compared with the peer.", ""},
		{"docs/page.md", "Somebody listens there.", "Persons"},
		{"docs/reference/page.md", "The port is free if nobody listens.", "Persons"},
		{"docs/page.md", "It waits for ever.", "Phrases"},
		{"docs/page.md", "A call that fails says so.", "Phrases"},
		{"docs/page.md", "Who has the lock uses it.", "Subjects"},
		{"docs/page.md", "It ends. Whose QP it is, the event has.", "Subjects"},
		{"docs/page.md", "What is not valid is rejected.", "Subjects"},
		{"docs/page.md", "Of which packets are lost, the report has the list.", "Subjects"},
		{"docs/page.md", "What it measures and who reads it.", ""},
		{"docs/page.md", "We send a packet.", "We"},
		{"docs/page.md", "It takes 12 us; see `our` and `nobody`.", ""},
		{"docs/page.md", long, "Length"},
		{"docs/page.md", strings.TrimPrefix(long, "word "), ""},
		{"docs/page.md", "Names, of which each is short; others are not.", ""},
		{"docs/reference/page.md", long, "Length"},
		{"docs/reference/verbs.md", long, ""},
		{"docs/reference/page.md", "A mishap.", "Words"},
		{"build/prose/errors/a.go.md", "- our queue is full", "We"},
		{"build/prose/errors/a.go.md", "- " + long, "Length"},
		{"build/prose/flags/a.go.md", "- keep packets; 0 is all", "Clauses"},
		{"build/prose/flags/a.go.md", "- the seed, so that a run repeats", "Clauses"},
		{"build/prose/flags/a.go.md", "- the seed of a run (default: drawn)", ""},
		{"host/a.go", "package a\n\n// Packets that were doubled.", "Words"},
		{"host/a.go", "package a\n\n// Packets.\nvar doubled, mishap = 1, \"a mishap\"", ""},
		{"host/a.go", "package a\n\n// f waits for whoever reads.\nfunc f() {}", "Persons"},
		{"host/a.go", "package a\n\n// Who has the lock uses it.\nvar x int", "Subjects"},
		{"host/a.go", "package a\n\n// f tells whether it runs.\nfunc f() {}", "Phrases"},
		{"host/a.go", "package a\n\nvar text = \"Who has nobody for ever?\"", ""},
		{"rdmacore/a.c", "/* Packets that were doubled. */\nint x;", "Words"},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(filepath.Dir(c.file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.file, []byte(c.text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			output, err := exec.Command(vale, "--config", config, "--output", "line", c.file).CombinedOutput()
			exit := (*exec.ExitError)(nil)
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			found := strings.Contains(string(output), ":rdmarun."+c.rule+":")
			if c.rule == "" && (err != nil || len(output) > 0) || c.rule != "" && (err == nil || !found) {
				t.Errorf("want %q, and vale says %q (%v)", c.rule, output, err)
			}
		})
	}
}
