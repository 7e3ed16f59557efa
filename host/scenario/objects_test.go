package scenario_test

import (
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
)

// TestObjects runs what steps make beside endpoints: it is freed in an order in which it can be.
func TestObjects(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/objects.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Passed != 4 || totals.Failed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v\n%s", totals, &text)
	}
}

// TestObjectsLeft sees an event of an object told as that of its role, and of no other.
func TestObjectsLeft(t *testing.T) {
	seen := &collector{}
	onOwn(t, "testdata/run/objects_fail.yaml", seen)
	if len(seen.results) != 1 || len(seen.results[0].Failures) != 1 {
		t.Fatalf("%+v", seen.results)
	}
	failure := terminal.FailureText(&seen.results[0].Failures[0], terminal.Style{})
	if !strings.Contains(failure, "server srq: an asynchronous event: SRQ_LIMIT_REACHED") {
		t.Error(failure)
	}
}
