package terminal

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rdmarun/host/record"
)

// ending shows a run whose cases took so long, one of them with thresholds.
func ending(t *testing.T, options HumanOptions, took ...time.Duration) string {
	t.Helper()
	var text strings.Builder
	h := NewHuman(&text, options)
	put := func(r record.Record) {
		if err := h.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	for i, each := range took {
		id := fmt.Sprintf("a.yaml::%d", i)
		put(record.Record{Kind: record.CaseStart, File: "a.yaml", Case: id, Start: &record.Start{Name: fmt.Sprint(i)}})
		result := record.Result{Name: fmt.Sprint(i), Status: record.Passed, Took: each}
		if i == 1 && options.Width == withThresholds {
			result.Status = record.Failed
			result.Failures = []record.Failure{
				{Kind: record.KindThreshold, File: "a.yaml", Line: 9, Column: 3, What: "threshold not held: latency p99 < 4us: 5.2 us"},
				{Kind: record.KindThreshold, File: "a.yaml", Line: 10, Column: 3, What: "threshold not held: loop p99 < 1ms: no samples"},
			}
			put(record.Record{Kind: record.Checked, File: "a.yaml", Case: id, Threshold: &record.Threshold{Text: "latency p50 < 4us", Value: "2.1 us", OK: true}})
			put(record.Record{Kind: record.Checked, File: "a.yaml", Case: id, Threshold: &record.Threshold{Text: "latency p99 < 4us", Value: "5.2 us", Line: 9, Column: 3}})
			put(record.Record{Kind: record.Checked, File: "a.yaml", Case: id, Threshold: &record.Threshold{Text: "loop p99 < 1ms", Reason: "no samples", Line: 10, Column: 3}})
		}
		put(record.Record{Kind: record.CaseEnd, File: "a.yaml", Case: id, Result: &result})
	}
	totals := record.Totals{Passed: len(took), Took: time.Second}
	if options.Width == withThresholds {
		totals.Passed, totals.Failed, totals.ByThreshold, totals.Thresholds = len(took)-1, 1, 1, 2
	}
	put(record.Record{Kind: record.RunEnd, Totals: &totals})
	return text.String()
}

// withThresholds is the width of a run in which thresholds did not hold.
const withThresholds = 80

const notHeld = `
FAIL  a.yaml::1
  a.yaml:9:3: threshold not held: latency p99 < 4us: 5.2 us
  a.yaml:10:3: threshold not held: loop p99 < 1ms: no samples
`

func TestThresholdsHaveTextAndValue(t *testing.T) {
	got := ending(t, HumanOptions{Width: withThresholds}, time.Millisecond, time.Millisecond)
	for _, want := range []string{
		"FAIL  1 ", "      threshold held: latency p50 < 4us: 2.1 us\n", "      threshold not held: latency p99 < 4us: 5.2 us\n", notHeld,
		"1 passed, 1 failed (2 thresholds not held)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "slowest") {
		t.Error("two cases have five slowest")
	}
	if quiet := ending(t, HumanOptions{Quiet: true, Width: withThresholds}, time.Millisecond, time.Millisecond); !strings.HasPrefix(quiet, notHeld) {
		t.Errorf("quiet:\n%s", quiet)
	}
}

func TestSlowestFive(t *testing.T) {
	const ms = time.Millisecond
	got := ending(t, HumanOptions{}, 3*ms, 40*ms, 1*ms, 60*ms, 40*ms, 2*ms, 700*ms, 4*ms)
	const want = "\nslowest\n    700 ms  a.yaml::6\n   60.0 ms  a.yaml::3\n   40.0 ms  a.yaml::1\n   40.0 ms  a.yaml::4\n   4.00 ms  a.yaml::7\n\n8 passed"
	if !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	if fast := ending(t, HumanOptions{}, ms, ms, ms, ms, ms, ms); strings.Contains(fast, "slowest") {
		t.Errorf("nothing was slow:\n%s", fast)
	}
}
