package guest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/internal/toolchain"
)

// pair is the scenario with the examples of guests/languages.
const pair = "../../guests/languages/pair.yaml"

// built skips what needs the examples in a language where they are not built, with the reason.
func built(t *testing.T, language string) {
	toolchain.Need(t, language)
	if _, err := os.Stat(filepath.Join("../../build/languages", language+".wasm")); err != nil {
		toolchain.Lacks(t, err.Error()+"; make languages builds it")
	}
}

// The examples of each language talk to those of each, in either role.
func TestPairsOfLanguages(t *testing.T) {
	languages := []string{"assemblyscript", "c", "cpp", "go", "rust"}
	for _, serves := range languages {
		for _, asks := range languages {
			t.Run(serves+" serves "+asks, func(t *testing.T) {
				built(t, serves)
				built(t, asks)
				runPair(t, serves, asks)
			})
		}
	}
}

func runPair(t *testing.T, serves, asks string) {
	checked := scenario.Check([]string{pair}, scenario.Params{Given: map[string]string{"serves": serves, "asks": asks}})
	var text strings.Builder
	if checked.Errors.Len()+checked.Errors.Warnings() > 0 {
		t.Fatal(checked.Errors.Render(&text, diag.Painter{}), &text)
	}
	totals, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", GuestCache: cacheDir,
		Consumers: []record.Consumer{terminal.NewHuman(&text, terminal.HumanOptions{})},
	})
	if err != nil || totals.Passed != 3 {
		t.Fatalf("%v\n%s", err, &text)
	}
	for _, want := range []string{"pingpong: 40 rounds, every byte verified", "kv: 40 keys put and read back",
		"negotiate: rejected, then agreed on 2 and 3"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("it does not print %q\n%s", want, &text)
		}
	}
}
