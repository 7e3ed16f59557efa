package scenario_test

import (
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
)

// TestBuildersFail holds what is said of requests that a queue pair has no builder for, or that say too little.
func TestBuildersFail(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/builders_fail.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Failed != 4 || totals.Passed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v", totals)
	}
	golden(t, "testdata/run/builders_fail.golden", normal(text.String()))
}
