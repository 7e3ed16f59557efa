package conformance

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// corpus is the folder of the conformance cases.
const corpus = "../../scenarios/conformance"

// founding are the man pages that claims.yaml covers sentence by sentence.
var founding = []string{"rdma_create_ep(3)", "rdma_create_id(3)", "rdma_create_qp(3)", "rdma_connect(3)"}

// sections are those of the specification that rows.yaml covers, with the least number of rows of each.
var sections = map[string]int{
	"1.1": 8, "1.2": 5, "1.3": 10, "1.4": 5, "1.5": 6, "1.6": 1, "1.7": 3, "1.8": 6, "1.9": 3,
	"2.1": 17, "2.2": 5, "2.3": 2, "2.4": 4, "2.5": 5, "2.6": 3, "2.7": 2, "2.8": 1, "2.9": 3, "2.10": 6, "2.11": 5,
	"2.12": 4, "2.13": 2, "2.14": 2, "2.15": 1, "2.16": 12,
}

// TestClaims wants each claim to have cases or tests that exist, or to be open with a reason.
func TestClaims(t *testing.T) {
	pages := held(t, "claims.yaml", "page", "section", "claim")
	for _, page := range founding {
		if pages[page] == 0 {
			t.Errorf("nothing of %s is claimed", page)
		}
		delete(pages, page)
	}
	for page := range pages {
		t.Errorf("%q is none of the founding man pages", page)
	}
}

// TestRows wants each row of the specification to be covered.
func TestRows(t *testing.T) {
	rows := held(t, "rows.yaml", "section", "row")
	for section, least := range sections {
		if rows[section] < least {
			t.Errorf("section %s has %d rows, and the specification has %d", section, rows[section], least)
		}
		delete(rows, section)
	}
	for section := range rows {
		t.Errorf("%q is no section of the specification", section)
	}
}

// held checks a file of sentences. Each has those keys, and cases or tests that check it, or a reason why nothing can.
// It counts them by their first key.
func held(t *testing.T, name string, keys ...string) map[string]int {
	t.Helper()
	cases := caseNames(checked(t))
	counts := make(map[string]int)
	for _, entry := range readList(t, name) {
		position := fmt.Sprintf("%s:%d", name, entry.Span().Line)
		for _, pair := range entry.Pairs {
			if !slices.Contains(append([]string{"cases", "tests", "open", "kernel"}, keys...), pair.Key.Value) {
				t.Errorf("%s: there is no key %q", position, pair.Key.Value)
			}
		}
		for _, key := range keys {
			if text(entry, key) == "" {
				t.Errorf("%s: %s is missing", position, key)
			}
		}
		counts[text(entry, keys[0])]++
		holders := append(listed(entry, "cases"), listed(entry, "tests")...)
		if open := text(entry, "open") != ""; open == (len(holders) > 0) {
			t.Errorf("%s: it is held by cases or tests, or open with a reason, one of both", position)
		}
		for _, item := range listed(entry, "cases") {
			if !cases[item.Value] {
				t.Errorf("%s:%d: there is no case %q", name, item.Span().Line, item.Value)
			}
		}
		for _, item := range listed(entry, "tests") {
			if !hasTest(item.Value) {
				t.Errorf("%s:%d: there is no test %q", name, item.Span().Line, item.Value)
			}
		}
	}
	return counts
}

func text(entry *syntax.Node, key string) string {
	if node := entry.Get(key); node != nil {
		return strings.TrimSpace(node.Value)
	}
	return ""
}

func listed(entry *syntax.Node, key string) []*syntax.Node {
	if node := entry.Get(key); node != nil {
		return node.Items
	}
	return nil
}

// hasTest looks for FILE::FUNCTION below the root of the project.
func hasTest(name string) bool {
	file, function, _ := strings.Cut(name, "::")
	source, err := os.ReadFile(filepath.Join("../..", file))
	if err != nil || function == "" {
		return false
	}
	return strings.Contains(string(source), " "+function+"(") // "func TestX(", "static void test_x("
}

func readList(t *testing.T, name string) []*syntax.Node {
	t.Helper()
	errors := &diag.List{}
	root := syntax.Parse(diag.NewSource(name, readFile(t, name)), errors)
	if errors.Len() > 0 || root == nil || root.Kind != syntax.Sequence {
		t.Fatalf("%s is no list: %v", name, errors.Sorted())
	}
	return root.Items
}

// readFile reads a file of the corpus.
func readFile(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(corpus, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checked is the corpus, which must be valid.
func checked(t *testing.T) []scenario.Scenario {
	t.Helper()
	result := scenario.Check([]string{corpus}, scenario.Params{})
	if result.Errors.Len() > 0 {
		t.Fatal(result.Errors.Sorted())
	}
	return result.Scenarios
}

// caseNames are the files and FILE::NAME of all cases, without the parameters of a matrix.
func caseNames(scenarios []scenario.Scenario) map[string]bool {
	names := make(map[string]bool)
	for _, s := range scenarios {
		for _, c := range s.Compiled.Cases {
			file, name := nameOf(c.ID)
			names[file], names[name] = true, true
		}
	}
	return names
}

// nameOf is the file of a case and FILE::CASE, without the values that distinguish cases of a matrix.
func nameOf(id string) (file, name string) {
	file, name, _ = strings.Cut(id, "::")
	if at := strings.LastIndexByte(name, '['); at > 0 && strings.HasSuffix(name, "]") {
		name = name[:at]
	}
	file = filepath.Base(file)
	return file, file + "::" + name
}
