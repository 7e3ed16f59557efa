package example_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/example"
)

// TestExamplesRun runs what `rdmarun explain` prints: the head of a file with one of its cases.
func TestExamplesRun(t *testing.T) {
	guest, noGuest := os.ReadFile("../../../guests/echo.wasm")
	all := example.All()
	if len(all) < 50 {
		t.Fatalf("only %d examples", len(all))
	}
	for _, each := range all {
		t.Run(each.File+"/"+each.Title, func(t *testing.T) {
			folder := t.TempDir()
			if noGuest == nil {
				write(t, folder, "echo.wasm", string(guest))
			}
			for name, text := range each.Beside {
				write(t, folder, name, text)
			}
			totals, text := run(t, write(t, folder, "example.yaml", each.Text))
			ran := totals.Passed + totals.XFailed
			if noGuest != nil && each.File == "guest" {
				ran += totals.Skipped
			}
			if total := totals.Passed + totals.XFailed + totals.Skipped + totals.Failed + totals.Errors; ran == 0 && each.File != "library" || ran != total {
				t.Errorf("%+v\n%s", totals, text)
			}
		})
	}
}

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run checks a file and runs it on soft.
func run(t *testing.T, path string) (record.Totals, string) {
	t.Helper()
	checked := scenario.Check([]string{path}, scenario.Params{})
	var text strings.Builder
	if checked.Errors.Len()+checked.Errors.Warnings() > 0 {
		if err := checked.Errors.Render(&text, diag.Painter{}); err != nil {
			t.Fatal(err)
		}
		t.Fatal(&text)
	}
	totals, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{terminal.NewHuman(&text, terminal.HumanOptions{})},
	})
	if err != nil {
		t.Fatal(err)
	}
	return totals, text.String()
}

// TestNoCaseWithoutWords: a case that is found by nothing is shown to nobody.
func TestNoCaseWithoutWords(t *testing.T) {
	for _, each := range example.All() {
		if each.File != "library" && len(each.Words) == 0 {
			t.Errorf("%s: %s has no words", each.File, each.Title)
		}
		for _, word := range each.Words {
			if found := example.Find(word); found == nil {
				t.Errorf("%s is not found", word)
			}
		}
	}
}
