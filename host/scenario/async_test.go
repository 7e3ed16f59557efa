package scenario_test

import (
	"slices"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// TestAsync runs roles that wait for asynchronous events at once.
func TestAsync(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/async.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Passed != 6 || totals.Failed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v\n%s", totals, &text)
	}
}

// TestAsyncLeft sees each event that nobody took told once, also when what it is of is gone by then.
func TestAsyncLeft(t *testing.T) {
	seen := &collector{}
	onOwn(t, "testdata/run/async_fail.yaml", seen)
	want := []string{"server ep: an asynchronous event: QP_ACCESS_ERR", "server ep: an asynchronous event: QP_ACCESS_ERR",
		"server ep: an asynchronous event: QP_ACCESS_ERR", "server ep: an asynchronous event: QP_ACCESS_ERR",
		"server srq: an asynchronous event: SRQ_LIMIT_REACHED", "soft0: an asynchronous event: DEVICE_FATAL"}
	for at, result := range seen.results {
		if len(result.Failures) != 1 {
			t.Fatalf("%+v", result)
		}
		failure := terminal.FailureText(&result.Failures[0], terminal.Style{})
		if strings.Count(failure, "asynchronous event") != 1 || !strings.Contains(failure, want[at]) {
			t.Errorf("%s: %s", result.Name, failure)
		}
	}
	if len(seen.results) != len(want) {
		t.Errorf("%d cases", len(seen.results))
	}
}

// TestAsyncOfAGuest: a guest gets the event of its queue pair, and a role that waits at the same time gets its own.
func TestAsyncOfAGuest(t *testing.T) {
	seen := &collector{}
	var text strings.Builder
	totals, err := scenario.Run(t.Context(), load(t, nil, "testdata/run/guest_async.yaml"), scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft",
		Consumers: []record.Consumer{seen, terminal.NewHuman(&text, terminal.HumanOptions{})},
	})
	if err != nil || totals.Passed != 1 {
		t.Errorf("%v %+v\n%s", err, totals, &text)
	}
	if !slices.ContainsFunc(seen.lines, func(line record.Line) bool {
		return strings.HasSuffix(line.Text, "WR_FLUSH_ERR after QP_ACCESS_ERR")
	}) {
		t.Errorf("the guest says %v", seen.lines)
	}
}
