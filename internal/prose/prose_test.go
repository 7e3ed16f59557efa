package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const source = `package p

import "fmt"

var command = Command{
	Short: "Runs it",
	Long: ` + "`First line,\nsecond line.`" + `,
}

func f(set Set) error { // reads it
	set.StringVar(&x, "name", "", "the name; it may be left out")
	use("no message")
	use("a text for readers, " + "in two parts")
	return fmt.Errorf("open %s: it is %-3d bytes", name, 7)
}
`

// Each text is on the line that it has in the source.
func TestTextsOf(t *testing.T) {
	found := texts{}
	if err := goTexts(found, "p.go", []byte(source)); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]map[int]string{
		"help":     {6: "Runs it", 7: "First line,", 8: "second line."},
		"flags":    {12: "- the name; it may be left out"},
		"errors":   {15: "- open X: it is X bytes"},
		"texts":    {14: "- a text for readers, in two parts"},
		"comments": {11: "- reads it"},
	} {
		if got := fmt.Sprint(found[kind]); got != fmt.Sprint(want) {
			t.Errorf("%s: %s, want %v", kind, got, want)
		}
	}
}

// Each comment is an entry of a list, so that a sentence does not continue in the comment below.
func TestComments(t *testing.T) {
	for file, text := range map[string]string{
		"p.go": `//go:build linux

/* One of
 * two lines. */
package p

/*
int c; // of cgo
*/
import "C"

// F does:
//
//	code()
//
//   - an item,
//     continued
const F = "// not one" // at the end
//nolint:all
`,
		"p.c": `#define X "/* not one */"

/* One of
 * two lines. */
char c = '"';

/*
 */

/*
 * F does:
 *
 *	code();
 *
 *   - an item,
 *     continued
 */
int f; // at the end
`,
	} {
		found := texts{}
		if filepath.Ext(file) == ".c" {
			cComments(found, text, lexemes[".c"])
		} else if err := goTexts(found, file, []byte(text)); err != nil {
			t.Fatal(err)
		}
		want := map[int]string{
			3: "- One of", 4: "two lines.", 12: "- F does:", 16: "- an item,", 17: "continued", 18: "- at the end",
		}
		if file == "p.c" {
			want = map[int]string{
				3: "- One of", 4: "two lines.", 11: "- F does:", 15: "- an item,", 16: "continued", 18: "- at the end",
			}
		}
		got := map[int]string{}
		for line, each := range found["comments"] {
			if each != "" {
				got[line] = each
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}

// A comment of a whole line continues on the next line, and others do not. Strings have none.
func TestLineComments(t *testing.T) {
	for _, test := range []struct {
		comment *regexp.Regexp
		text    string
	}{
		{hash, "# One of\n# two lines.\n\na: b # at the end\nc: 'a # b'\nd: a#b\n"},
		{semicolons, ";; One of\n;; two lines.\n\n(nop) ;; at the end\n(data \"a;; b\")\n(nop (;;)) (; no ;)\n"},
	} {
		found := texts{}
		lineComments(found, test.text, test.comment)
		want := map[int]string{1: "- One of", 2: "two lines.", 4: "- at the end"}
		if got := found["comments"]; fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// A file of sources gets files of its path, and what an earlier run has left is gone.
func TestExtract(t *testing.T) {
	t.Chdir(t.TempDir())
	for file, text := range map[string]string{
		"a/p.go": source, "a/p_test.go": source, "out/flags/old.go.md": "- old\n",
		"a/testdata/p.yaml": "# is that which\n", "a/testdata/p.wat": ";; Ends.\n",
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
	if got := strings.Join(files, " "); got != "out/comments/a out/errors/a out/flags/a out/help/a out/texts/a" {
		t.Error(got)
	}
	if files, err := filepath.Glob("out/*/a/testdata/*"); err != nil || len(files) != 1 ||
		files[0] != "out/comments/a/testdata/p.wat.md" {
		t.Errorf("of test data: %q, %v", files, err)
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
		{"docs/page.md", "Times are printed beside the baseline.", "Words"},
		{"docs/page.md", "Both errors cannot be told apart.", "Words"},
		{"docs/page.md", "There is no record of it. The owner is compared with the peer.", ""},
		{"docs/page.md", "The place stands in the trace.", "Things"},
		{"docs/page.md", "The word told is no more.", "Things"},
		{"docs/reference/page.md", "A queue whose entries are read.", "Things"},
		{"docs/page.md", "One number stands for all steps.", ""},
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
		{"docs/reference/statuses.md", long, ""},
		{"docs/reference/verbs.md", long, "Length"},
		{"docs/reference/page.md", "A mishap.", "Words"},
		{"build/prose/errors/a.go.md", "- our queue is full", "We"},
		{"build/prose/errors/a.go.md", "- " + long, "Length"},
		{"build/prose/errors/a.go.md", "- the device tells nothing", "Things"},
		{"build/prose/help/a.go.md", "A file whose cases failed.", "Things"},
		{"build/prose/texts/a.go.md", "- the peer was told of the end", "Things"},
		{"build/prose/flags/a.go.md", "- keep packets; 0 is all", "Clauses"},
		{"build/prose/flags/a.go.md", "- the seed, so that a run repeats", "Clauses"},
		{"build/prose/flags/a.go.md", "- hosts whose agents stay", "Things"},
		{"build/prose/flags/a.go.md", "- the seed of a run (default: drawn)", ""},
		{"host/a.go", "package a\n\n// Packets that were doubled.", "Words"},
		{"host/a.go", "package a\n\n// " + long + "\nvar x int", "Length"},
		{"host/a_test.go", "package a\n\n// " + long + "\nvar x int", "Length"},
		{"host/a.go", "package a\n\nvar x int // " + long, "Length"},
		{"host/a.go", "package a\n\nvar x int // one\nvar y int // " + strings.TrimPrefix(long, "word "), ""},
		{"host/a.go", "package a\n\n// X is one. We send it.\nvar X int", "We"},
		{"host/a.go", "package a\n\n// X is\n//\n//\tcode of our own " + long + "\nvar X int", ""},
		{"host/scenario/exec/a.go", "package exec\n\n// Somebody reads it.\nvar x int", "Persons"},
		{"host/scenario/meeting/a.go", "package meeting\n\n// Who has the lock uses it.\nvar x int", "Subjects"},
		{"host/record/a.go", "package record\n\n// It waits for ever.\nvar x int", "Phrases"},
		{"host/a.go", "package a\n\n// Packets.\nvar doubled, mishap = 1, \"a mishap\"", ""},
		{"host/a.go", "package a\n\n// f waits for whoever reads.\nfunc f() {}", "Persons"},
		{"host/a.go", "package a\n\n// Who has the lock uses it.\nvar x int", "Subjects"},
		{"host/a.go", "package a\n\n// f tells whether it runs.\nfunc f() {}", "Phrases"},
		{"host/a.go", "package a\n\n// x is a queue whose entries are read.\nvar x int", "Things"},
		{"host/a_test.go", "package a\n\nvar x int // told to stop", "Things"},
		{"host/a.go", "package a\n\n// Each x stands for one whole.\nvar x int", ""},
		{"host/a.go", "package a\n\nvar text = \"Ends when nobody waits for it.\"", "Persons"},
		{"host/a.go", "package a\n\nvar word = \"for ever\"", ""},
		{"rdmacore/a.c", "/* Packets that were doubled. */\nint x;", "Words"},
		{"rdmacore/a.c", "/*\n * " + long + "\n */\nint x;", "Length"},
		{"rdmacore/a.h", "int x; /* a block of ours */", "We"},
		{"rdmacore/a.h", "int x; /* where it stands */", "Things"},
		{"rdmacore/a.c", "/* Tell the peer that it ends. */\nint x;", "Things"},
		{"sdk/rust/a.rs", "/// Waits for a peer\n/// whose QP is there.\nfn f<'a>(x: &'a str) {}", "Things"},
		{"sdk/rust/a.rs", "fn f<'a>(x: &'a str) -> char { '\\'' } // we send", "We"},
		{"sdk/rust/a.rs", "const X: &str = r#\"// we\n\"#;\n/// One:\n/// ```\n/// // we send\n/// ```\nfn f() {}", ""},
		{"sdk/a.ts", "/** A queue whose entries are read. */", "Things"},
		{"sdk/a.ts", "const x = `// we send`;", ""},
		{"scenarios/a.yaml", "tests: # " + long, "Length"},
		{"scenarios/a.yaml", "a: \"# we send\"\nb: x#we\n# One.\n# Two lines\n# are here.", ""},
		{"tools/a.sh", "#!/bin/sh\n# shellcheck disable=SC1 # our own\n# Nobody listens.\nx=$#", "Persons"},
		{"tools/a", "#!/usr/bin/env bash\necho # for ever", "Phrases"},
		{"tools/a.txt", "# We send.", ""},
		{"rdmacore/a.c", "char *x = \"Who has nobody for ever? /* We */\";", ""},
	} {
		t.Run(c.text, func(t *testing.T) {
			t.Chdir(t.TempDir())
			if err := os.MkdirAll(filepath.Dir(c.file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(c.file, []byte(c.text+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
			if filepath.Ext(c.file) != ".md" {
				if err := extract("build/prose", []string{c.file}); err != nil {
					t.Fatal(err)
				}
			}
			output, err := exec.Command(vale, "--config", config, "--output", "line", ".").CombinedOutput()
			exit := (*exec.ExitError)(nil)
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			found := regexp.MustCompile(`:(rdmarun|flags)\.` + c.rule + ":").Match(output)
			if c.rule == "" && (err != nil || len(output) > 0) || c.rule != "" && (err == nil || !found) {
				t.Errorf("want %q, and vale says %q (%v)", c.rule, output, err)
			}
		})
	}
}
