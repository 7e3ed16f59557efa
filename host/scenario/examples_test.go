package scenario_test

import (
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// TestExamples runs the scenarios that come with rdmarun on soft, each case with the clock of its file.
func TestExamples(t *testing.T) {
	for file, cases := range map[string]int{"rping.yaml": 1, "negotiate.yaml": 9, "faults.yaml": 7, "sweep.yaml": 1, "connections.yaml": 1, "guest-faults.yaml": 2, "guest-crowd.yaml": 2} {
		t.Run(file, func(t *testing.T) {
			var text strings.Builder
			human := terminal.NewHuman(&text, terminal.HumanOptions{})
			path := filepath.Join("../../scenarios", file)
			totals, err := scenario.Run(t.Context(), load(t, nil, path), scenario.RunConfig{
				Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{human},
			})
			if err != nil || totals.Passed != cases || totals.Failed+totals.Errors+totals.Skipped > 0 {
				t.Errorf("%v %+v\n%s", err, totals, &text)
			}
		})
	}
}
