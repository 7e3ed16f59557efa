package scenario_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/explain"
)

// TestRNRTimersAreThose compares the list of explain with what soft does. A send that finds no receive is repeated
// once, exactly after the receiver's timer.
func TestRNRTimersAreThose(t *testing.T) {
	times := explain.Times()
	at := slices.IndexFunc(times, func(each explain.Time) bool { return each.What == "RNR timers" })
	if at < 0 {
		t.Fatal("explain has no RNR timers")
	}
	_, list, _ := strings.Cut(times[at].Long, "): ")
	timers := strings.Split(list, ", ")
	if len(timers) != 32 {
		t.Fatalf("%d timers: %q", len(timers), list)
	}
	text := `rdmarun: v1
imports: {cm: std/cm}
defaults: {qp: {sig_all: true}}
roles: {server: {}, client: {buffers: {tx: {size: 8}}}}
steps:
  - {use: cm.listen}
`
	for code, timer := range timers {
		text += fmt.Sprintf(`  - {use: cm.connect, with: {ep: ep%[1]d, accept: {rnr_retry_count: 1}}}
  - {role: server, modify_qp: {ep: ep%[1]d, min_rnr_timer: %[1]d}}
  - {role: client, post_send: {ep: ep%[1]d, buffer: tx}}
  - {role: client, poll: {ep: ep%[1]d, cq: send}, expect: {status: RNR_RETRY_EXC_ERR}, took: {min: %[2]sms, max: %[2]sms}}
`, code, timer)
	}
	if shown := everywhere(t, text)["terminal"]; !strings.Contains(shown, "1 passed") {
		t.Error(shown)
	}
}

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

// TestObjects runs steps that create objects other than endpoints. They are freed in a possible order.
func TestObjects(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/objects.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Passed != 4 || totals.Failed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v\n%s", totals, &text)
	}
}

// TestObjectsLeft: an event of an object is reported as one of its role, and of no other.
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

// TestBuildersFail checks the errors of requests that a queue pair has no builder for, or that lack arguments.
func TestBuildersFail(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/builders_fail.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Failed != 4 || totals.Passed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v", totals)
	}
	golden(t, "testdata/run/builders_fail.golden", normal(text.String()))
}

// TestRates: the rounds of a repeat begin when they are due, as long as it lasts, and until its condition holds.
func TestRates(t *testing.T) {
	totals, err := scenario.Run(
		t.Context(), load(t, nil, "testdata/run/rate.yaml"), scenario.RunConfig{ProviderName: "soft"},
	)
	if err != nil || totals.Passed != 1 || totals.Thresholds != 0 {
		t.Errorf("%v, %+v", err, totals)
	}
}
