package conformance

import (
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

// founding are the man pages whose every sentence claims.yaml holds.
var founding = []string{"rdma_create_ep(3)", "rdma_create_id(3)", "rdma_create_qp(3)", "rdma_connect(3)"}

// TestClaims wants each claim held by cases that there are, or open with a reason.
func TestClaims(t *testing.T) {
	claims := readClaims(t)
	cases := caseNames(checked(t))
	pages := make(map[string]int)
	for _, claim := range claims {
		text := func(key string) string {
			if node := claim.Get(key); node != nil {
				return strings.TrimSpace(node.Value)
			}
			return ""
		}
		position := claim.Span().Line
		pages[text("page")]++
		if text("claim") == "" || text("section") == "" {
			t.Errorf("claims.yaml:%d: a claim has page, section and claim", position)
		}
		for _, pair := range claim.Pairs {
			if !slices.Contains([]string{"page", "section", "claim", "cases", "open"}, pair.Key.Value) {
				t.Errorf("claims.yaml:%d: a claim has no key %q", pair.Key.Span().Line, pair.Key.Value)
			}
		}
		named := claim.Get("cases")
		switch {
		case named == nil && text("open") == "":
			t.Errorf("claims.yaml:%d: %q has neither cases nor a reason why it is open", position, text("claim"))
		case named != nil && text("open") != "":
			t.Errorf("claims.yaml:%d: %q is held by cases, and open", position, text("claim"))
		case named != nil && len(named.Items) == 0:
			t.Errorf("claims.yaml:%d: the list of cases is empty", position)
		case named != nil:
			for _, item := range named.Items {
				if !cases[item.Value] {
					t.Errorf("claims.yaml:%d: there is no case %q", item.Span().Line, item.Value)
				}
			}
		}
	}
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

func readClaims(t *testing.T) []*syntax.Node {
	t.Helper()
	errors := &diag.List{}
	root := syntax.Parse(diag.NewSource("claims.yaml", readFile(t, "claims.yaml")), errors)
	if errors.Len() > 0 || root == nil || root.Kind != syntax.Sequence {
		t.Fatalf("claims.yaml is no list: %v", errors.Sorted())
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

// caseNames are FILE::NAME of all cases, without the parameters of a matrix.
func caseNames(scenarios []scenario.Scenario) map[string]bool {
	names := make(map[string]bool)
	for _, s := range scenarios {
		for _, c := range s.Program.Cases {
			file, name, _ := strings.Cut(c.ID, "::")
			if at := strings.LastIndexByte(name, '['); at > 0 && strings.HasSuffix(name, "]") {
				name = name[:at]
			}
			names[filepath.Base(file)+"::"+name] = true
		}
	}
	return names
}
