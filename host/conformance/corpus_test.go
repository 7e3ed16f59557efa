package conformance

import (
	"strings"
	"testing"

	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/record"
	"rdmarun/host/scenario/report"
)

// leastCases is how large the corpus has become; it does not shrink.
const leastCases = 597

// TestCorpus runs every conformance case on the embedded provider: what each asserts is the kernel's behaviour,
// which make conformance proves in the virtual machine.
func TestCorpus(t *testing.T) {
	var text strings.Builder
	human := report.NewHuman(&text, report.HumanOptions{Quiet: true})
	totals, err := scenario.Run(t.Context(), checked(t), scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{human},
	})
	if err != nil || totals.Failed+totals.Errors > 0 || totals.Skipped != iwarpCases(t) {
		t.Errorf("%v %+v\n%s", err, totals, &text)
	}
	if totals.Passed < leastCases {
		t.Errorf("%d cases passed; there were %d", totals.Passed, leastCases)
	}
}

// iwarpCases counts the cases of iWARP, which soft is not; they run on siw in the virtual machine.
func iwarpCases(t *testing.T) int {
	t.Helper()
	count := 0
	for _, s := range checked(t) {
		if strings.HasSuffix(s.Path, "iwarp.yaml") {
			count += len(s.Program.Cases)
		}
	}
	if count == 0 {
		t.Error("there are no cases of iWARP")
	}
	return count
}

// TestKnownCases wants every known difference to be of a case that there is.
func TestKnownCases(t *testing.T) {
	ids := make(map[string]bool)
	for _, s := range checked(t) {
		for _, c := range s.Program.Cases {
			ids[strings.TrimPrefix(c.ID, "../../")] = true
		}
	}
	errors := &diag.List{}
	for _, k := range ReadKnown("known.yaml", readFile(t, "known.yaml"), errors) {
		if !ids[k.Case] {
			t.Errorf("%s: there is no case %q", k.Position(), k.Case)
		}
	}
	if errors.Len() > 0 {
		t.Errorf("%v", errors.Sorted())
	}
}
