package conformance

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// askers are the tests of the core that run on soft and on a kernel. A test asks which it is by the name of an
// exception. home are the files that use the provider's name. settings are what no other file may read or compare.
var askers = []struct {
	pattern         string
	home            []string
	calls, settings *regexp.Regexp
}{
	{"rdmacore/ctest/*/*.[ch]", []string{"pair.c", "pair.h"}, regexp.MustCompile(`\bon_soft\(([^)]*)\)`),
		regexp.MustCompile(`"CTEST_PROVIDER"|provider->name\b|strcmp\([^;]*"soft"`)},
	{"rdmacore/*_test.go", []string{"main_test.go"}, regexp.MustCompile(`\b(?:onSoft|softOnly)\((?:t, )?([^)]*)\)`),
		regexp.MustCompile(`Getenv\(testProvider\)|chosenProvider\(\) *[!=]=|RDMARUN_TEST_PROVIDER`)},
}

// TestExceptions checks that each check that only soft gets is named, and that each name is used. A name must have a
// case that checks a kernel as well, or a reason why none can.
func TestExceptions(t *testing.T) {
	held(t, "exceptions.yaml", "exception")
	named := exceptions(t)
	used := make(map[string]bool)
	for _, asker := range askers {
		files, err := filepath.Glob(filepath.Join("../..", asker.pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", asker.pattern, len(files), err)
		}
		for _, file := range files {
			if slices.Contains(asker.home, filepath.Base(file)) {
				continue
			}
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if found := asker.settings.Find(source); found != nil {
				t.Errorf("%s looks at the provider itself (%s); exceptions have names", file, found)
			}
			for _, call := range asker.calls.FindAllSubmatch(source, -1) {
				name, quoted := strings.CutPrefix(string(call[1]), `"`)
				name = strings.TrimSuffix(name, `"`)
				if !quoted || !named[name] {
					t.Errorf("%s: %s names no entry of exceptions.yaml", file, call[0])
				}
				used[name] = true
			}
		}
	}
	for name := range named {
		if !used[name] {
			t.Errorf("exceptions.yaml: no test asks for %q", name)
		}
	}
}

// exceptions are the names in the list.  Each with a case that asks a kernel has a text.
func exceptions(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	for _, entry := range readList(t, "exceptions.yaml") {
		name := text(entry, "exception")
		if names[name] {
			t.Errorf("exceptions.yaml:%d: %q is there already", entry.Span().Line, name)
		}
		names[name] = true
		if (text(entry, "kernel") == "") != (text(entry, "open") != "") {
			t.Errorf(
				"exceptions.yaml:%d: either kernel says what it does, or open why it is not asked", entry.Span().Line,
			)
		}
	}
	return names
}
