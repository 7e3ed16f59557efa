package scenario_test

import (
	"regexp"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
)

// TestSingleSteps runs every verb of rdma_cm and of its objects by itself, in right states and in wrong ones.
func TestSingleSteps(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/single_steps.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Passed == 0 || totals.Failed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v\n%s", totals, &text)
	}
}

// TestSingleStepsOfSome runs those that a provider may lack, and nothing else may be wrong with them.
func TestSingleStepsOfSome(t *testing.T) {
	seen := &collector{}
	onOwn(t, "testdata/run/single_steps_more.yaml", seen)
	for _, result := range seen.results {
		for _, failure := range result.Failures {
			if failure.Kind == "leftover" {
				continue // of the step that the provider lacks
			}
			if !lacks.MatchString(failure.Got) {
				t.Errorf("%s: %s", result.Name, terminal.FailureText(&failure, terminal.Style{}))
			}
		}
	}
}

// lacks is how a provider says that it does not have an operation, a port space, or a route as InfiniBand has it.
var lacks = regexp.MustCompile(`ENOSYS|EPROTONOSUPPORT|EOPNOTSUPP|rdma_resolve_route: no such file`)
