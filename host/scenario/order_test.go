package scenario_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// timeless keeps records without what another run cannot have: wall-clock times, and numbers given out.
type timeless struct{ lines []string }

func (c *timeless) Wants(record.Kind) bool { return true }

func (c *timeless) Record(r *record.Record) error {
	plain := *r
	plain.Elapsed = 0
	plain.Time = plain.Time.Truncate(1 << 62)
	if r.Step != nil {
		step := *r.Step
		step.At, step.Took = 0, 0
		plain.Step = &step
	}
	if r.Result != nil {
		result := *r.Result
		result.Took, result.Loops = 0, nil
		for i, failure := range result.Failures {
			failure.Timeline = nil
			result.Failures[i] = failure
		}
		plain.Result = &result
	}
	plain.Totals, plain.Run = nil, nil
	text, err := json.Marshal(&plain)
	c.lines = append(c.lines, string(text))
	return err
}

// TestBarriers wants branches of parallel steps to meet, by roles and by names.
func TestBarriers(t *testing.T) {
	seen := &collector{}
	totals := onOwn(t, "testdata/run/barriers.yaml", seen)
	if totals.Passed != 5 || totals.Failed != 1 {
		for _, result := range seen.results {
			t.Errorf("%s: %s %+v", result.Name, result.Status, result.Failures)
		}
	}
	if f := seen.results[3].Failures; len(f) != 1 || !strings.Contains(f[0].What, "never") ||
		f[0].Expected != "the branch of role client" {
		t.Errorf("no peer comes: %+v", f)
	}
	var lines []string
	for _, line := range seen.lines {
		lines = append(lines, line.Text)
	}
	text := strings.Join(lines, ", ")
	if !strings.HasPrefix(text, "client comes, server comes, waiter comes, ") {
		t.Errorf("order of arrival: %s", text)
	}
	// The seed draws the order within one second, and only there.
	branches := lines[max(0, len(lines)-14):]
	for _, second := range []string{"a 1, b 1, c 1", "a 2, b 2, c 2, d 1", "a 3, b 3, c 3", "a 4, b 4, c 4, d 2"} {
		of := min(len(branches), strings.Count(second, ",")+1)
		now := slices.Sorted(slices.Values(branches[:of]))
		if branches = branches[of:]; strings.Join(now, ", ") != second {
			t.Errorf("order of branches: %s", text)
		}
	}
}

// TestSameSeedSameTrace wants that parallel branches on the virtual clock do the same in every run.
func TestSameSeedSameTrace(t *testing.T) {
	first := &timeless{}
	onOwn(t, "testdata/run/barriers.yaml", first)
	for range 10 {
		again := &timeless{}
		onOwn(t, "testdata/run/barriers.yaml", again)
		for i := range max(len(first.lines), len(again.lines)) {
			if i >= len(first.lines) || i >= len(again.lines) || first.lines[i] != again.lines[i] {
				t.Fatalf(
					"record %d of %d and %d:\n%s\n%s", i, len(first.lines), len(again.lines), first.lines[i],
					again.lines[i],
				)
			}
		}
	}
}

// TestAsync runs roles that wait for asynchronous events at once.
func TestAsync(t *testing.T) {
	var text strings.Builder
	totals := onOwn(t, "testdata/run/async.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	if totals.Passed != 6 || totals.Failed+totals.Errors+totals.Skipped > 0 {
		t.Errorf("%+v\n%s", totals, &text)
	}
}

// TestAsyncLeft: each unread event is reported once, also when its object is gone by then.
func TestAsyncLeft(t *testing.T) {
	seen := &collector{}
	onOwn(t, "testdata/run/async_fail.yaml", seen)
	want := []string{"server ep: an asynchronous event: QP_ACCESS_ERR", "server ep: an asynchronous event: " +
		"QP_ACCESS_ERR",
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

// TestGuestCall calls functions of a guest that waits at a barrier.
func TestGuestCall(t *testing.T) {
	seen := &collector{}
	_, err := scenario.Run(t.Context(), load(t, nil, "testdata/run/guest_call.yaml"), scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{seen},
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "expected result 3, got result 2", "unreachable", "does not run"} {
		result, text := seen.results[i], ""
		if len(result.Failures) > 0 {
			f := result.Failures[0]
			text = f.What + " expected " + f.Expected + ", got " + f.Got
		}
		if (text == "") != (want == "") || !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", result.Name, text, want)
		}
	}
}

// A guest that traps says where, in its own functions.
func TestGuestTrap(t *testing.T) {
	var text strings.Builder
	onOwn(t, "testdata/run/guest_trap.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}))
	golden(t, "testdata/run/guest_trap.golden", normal(text.String()))
}
