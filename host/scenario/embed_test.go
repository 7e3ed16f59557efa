package scenario_test

import (
	"os"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
)

// TestEmbedded runs each scenario of a folder as a subtest, with what the command would print.
func TestEmbedded(t *testing.T) {
	checked := scenario.Check([]string{"testdata/embed"}, scenario.Params{})
	if checked.Errors.Len() > 0 {
		var text strings.Builder
		_ = checked.Errors.Render(&text, diag.Painter{})
		t.Fatal(text.String())
	}
	for _, each := range checked.Scenarios {
		t.Run(each.Path, func(t *testing.T) {
			totals, err := scenario.Run(t.Context(), []scenario.Scenario{each}, scenario.RunConfig{
				Consumers: []record.Consumer{terminal.NewHuman(t.Output(), terminal.HumanOptions{})},
			})
			if err != nil || totals.Failed+totals.Errors > 0 {
				t.Errorf("%+v, %v", totals, err)
			}
		})
	}
}

// TestEmbeddingIsDocumented compares the page with the test above.
func TestEmbeddingIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/how-to/embed.md")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("embed_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(page), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	_, shown, _ := strings.Cut(code, "\n)\n")
	shown = strings.ReplaceAll(strings.TrimSpace(shown), "testdata/scenarios", "testdata/embed")
	if shown == "" || !strings.Contains(string(own), shown) {
		t.Errorf("the page shows\n%s\nand that is not the code of this file", shown)
	}
}

// TestRunNamesSoft: a run without a provider is on soft, and reports that.
func TestRunNamesSoft(t *testing.T) {
	var text strings.Builder
	checked := scenario.Check([]string{"testdata/embed"}, scenario.Params{})
	if _, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Consumers: []record.Consumer{terminal.NewHuman(&text, terminal.HumanOptions{})},
	}); err != nil || !strings.HasPrefix(text.String(), "1 case on provider soft\n") {
		t.Errorf("%v: %s", err, &text)
	}
}
