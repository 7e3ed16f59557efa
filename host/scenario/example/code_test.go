package example_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/example"
)

var codeForm = regexp.MustCompile(`(?m): (?:error|warning)\[([EW]\d+)\]`)

// TestCodes wants of each code's wrong scenario that code and no other, and nothing of the right one.
func TestCodes(t *testing.T) {
	codes := example.Codes()
	for code := range diag.Titles() {
		// E0213 to E0215, E0219 and E0221 want guests or several files.
		wanted := strings.HasPrefix(string(code), "E02") && !slices.Contains([]diag.Code{"E0213", "E0214", "E0215", "E0219", "E0221"}, code)
		if wanted && !slices.Contains(codes, string(code)) {
			t.Errorf("%s has no example", code)
		}
	}
	for _, code := range codes {
		t.Run(code, func(t *testing.T) {
			wrong, right := example.OfCode(code)
			if got := found(t, wrong); !slices.Equal(got, []string{code}) {
				t.Errorf("the wrong one has %v\n%s", got, wrong)
			}
			if got := found(t, right); len(got) > 0 {
				t.Errorf("the right one has %v\n%s", got, right)
			}
		})
	}
}

// found lists the codes that the check of a scenario reports.
func found(t *testing.T, text string) []string {
	t.Helper()
	checked := scenario.Check([]string{write(t, t.TempDir(), "example.yaml", text)}, scenario.Params{})
	var shown strings.Builder
	if err := checked.Errors.Render(&shown, diag.Painter{}); err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, match := range codeForm.FindAllStringSubmatch(shown.String(), -1) {
		codes = append(codes, match[1])
	}
	return codes
}
