package example_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/example"
)

var codeForm = regexp.MustCompile(`(?m): (?:error|warning)\[([EW]\d+)\]`)

// TestCodes wants of each code's wrong scenario that code and no other, and nothing of the right one.  So a code that
// nothing raises cannot stay in the table.
func TestCodes(t *testing.T) {
	codes := example.Codes()
	for code := range diag.Titles() {
		if !slices.Contains(codes, string(code)) {
			t.Errorf("%s has no example", code)
		}
	}
	for _, code := range codes {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			wrong, right := example.OfCode(code)
			if got := found(t, wrong); !slices.Equal(got, []string{code}) {
				t.Errorf("the wrong one has %v\n%.4000s", got, wrong[example.Checked])
			}
			if got := found(t, right); len(got) > 0 {
				t.Errorf("the right one has %v\n%s", got, right[example.Checked])
			}
		})
	}
}

// found lists the codes that the check of a scenario, with the files beside it, reports.
func found(t *testing.T, texts map[string]string) []string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range texts {
		write(t, folder, name, text)
	}
	checked := scenario.Check([]string{filepath.Join(folder, example.Checked)}, scenario.Params{})
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
