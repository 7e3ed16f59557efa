package terminal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/record"
)

func TestDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 ns", 999: "999 ns", 1500: "1.50 us", 21300: "21.3 us", 999 * time.Microsecond: "999 us",
		1230 * time.Microsecond: "1.23 ms", 2004 * time.Millisecond: "2.00 s", 90 * time.Second: "1m30s",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}

func TestBytes(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0B", 9999: "9999B", 64 << 10: "64KiB", 20 << 20: "20MiB", 16 << 30: "16GiB",
	} {
		if got := (Units{}).Bytes(n); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

// stream is a run of one case that passed, one that failed, one that was skipped.
func stream() []*record.Record {
	return []*record.Record{
		{Kind: record.RunStart, Run: &record.Run{Provider: "soft", Cases: 3}},
		{Kind: record.CaseStart, File: "a.yaml", Case: "a.yaml::one", Start: &record.Start{Name: "one"}},
		{
			Kind: record.StepEnd, Elapsed: 1500 * time.Microsecond,
			Step: &record.Step{
				Role: "client", Action: "poll", Text: "send", Outcome: "wr_id 1 SEND", At: 1500 * time.Microsecond,
				Took: 900, OK: true,
			},
		},
		{Kind: record.Output, Line: &record.Line{Role: "server", Text: "hello"}},
		{Kind: record.Output, Line: &record.Line{Text: "from the runner"}},
		{Kind: record.CaseEnd, File: "a.yaml", Case: "a.yaml::one", Result: &record.Result{
			Name: "one", Status: record.Passed, Took: 1234 * time.Microsecond, Steps: 1,
			Loops:   []record.Loop{{Name: "ping", Rounds: 10, Min: 1000, Median: 2000, P99: 3000, Max: 4000}},
			Traffic: []record.Traffic{{Operation: "SEND", Count: 40, Bytes: 340}},
		}},
		{Kind: record.CaseEnd, File: "a.yaml", Case: "a.yaml::two", Result: &record.Result{
			Name: "two", Status: record.Failed, Took: time.Second,
			Failures: []record.Failure{{
				Kind: "expectation", File: "a.yaml", Line: 7, Column: 9, Role: "client", Action: "poll",
				What:    "wrong status",
				Excerpt: []string{"    7 | poll", "      | ^~~~"}, Expected: "SUCCESS", Got: "RNR_RETRY_EXC_ERR",
				Hint: "post a receive",
				Path: []string{"ping 3"}, Rerun: "rdmarun run a.yaml",
				Timeline: []record.Moment{{
					At: 2001430 * time.Microsecond, Role: "client", Text: "poll send", File: "x/a.yaml", Line: 7,
				}},
			}},
		}},
		{
			Kind: record.CaseEnd, File: "b.yaml", Case: "b.yaml",
			Result: &record.Result{Name: "three", Status: record.Skipped, Reason: "it needs -p peer=.."},
		},
		{Kind: record.RunEnd, Totals: &record.Totals{Took: 2 * time.Second, Passed: 1, Failed: 1, Skipped: 1}},
	}
}

// TestLinesOfOthers: a text of several lines from a host or a guest does not look like lines of rdmarun. No line of it
// is one that a CI system obeys.
func TestLinesOfOthers(t *testing.T) {
	const said = "first\r\nPASS  a.yaml\n::error::x"
	var out strings.Builder
	h := NewHuman(&out, HumanOptions{Steps: true})
	for _, r := range []*record.Record{
		{Kind: record.RunStart, Run: &record.Run{Provider: "soft", Cases: 1}},
		{Kind: record.CaseStart, File: "a.yaml", Case: "a.yaml", Start: &record.Start{Name: "a"}},
		{Kind: record.StepEnd, Step: &record.Step{Role: "client", Action: said, Text: said, Outcome: said}},
		{Kind: record.Output, Line: &record.Line{Role: "server", Text: said}},
		{Kind: record.Output, Line: &record.Line{Text: said}},
		{Kind: record.CaseEnd, File: "a.yaml", Case: "a.yaml",
			Result: &record.Result{Name: "a", Status: record.Failed, Failures: []record.Failure{{
				File: "a.yaml", Role: "client", Action: said, What: said, Expected: said, Got: said, Hint: said,
				Details:  []string{said},
				Timeline: []record.Moment{{Role: "client", Text: said}},
			}}}},
		{Kind: record.RunEnd, Totals: &record.Totals{Failed: 1}},
	} {
		if err := h.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(out.String()) {
		if strings.HasPrefix(line, "PASS") || strings.HasPrefix(strings.TrimSpace(line), "::") {
			t.Errorf("%q in\n%s", line, out.String())
		}
	}
}

func render(t *testing.T, options HumanOptions) string {
	t.Helper()
	var text strings.Builder
	h := NewHuman(&text, options)
	for _, r := range stream() {
		if !h.Wants(r.Kind) {
			continue
		}
		if err := h.Record(r); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

const plain = `3 cases on provider soft

a.yaml
RUN   one
      server   | hello
      from the runner
PASS  one                                                              1.23 ms
      ping       10 rounds, min 1.00 us, p50 2.00 us, p99 3.00 us, max 4.00 us
      1 step: 40 SEND (340B)
FAIL  two                                                               1.00 s
      a.yaml:7:9: client poll: wrong status
SKIP  three  b.yaml
      it needs -p peer=..

FAIL  a.yaml::two
  a.yaml:7:9: client poll: wrong status
     in ping 3
      7 | poll
        | ^~~~
        = expected  SUCCESS
        = got       RNR_RETRY_EXC_ERR
        = hint      post a receive
     timeline (the last steps of each role)
        +2.001 430  client  poll send  a.yaml:7
     rerun: rdmarun run a.yaml

1 passed, 1 failed, 1 skipped  in 2.00 s
`

func TestHuman(t *testing.T) {
	if got := render(t, HumanOptions{}); got != plain {
		t.Errorf("got:\n%s\nwant:\n%s", got, plain)
	}
}

func TestQuiet(t *testing.T) {
	_, want, _ := strings.Cut(plain, "peer=..\n")
	if got := render(t, HumanOptions{Quiet: true}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestSteps(t *testing.T) {
	const want = "RUN   one\n       +1.50 ms  900 ns  client   poll send  -> wr_id 1 SEND\n      server   | hello\n"
	if got := render(t, HumanOptions{Steps: true}); !strings.Contains(got, want) {
		t.Error(got)
	}
}

// TestColour must differ from plain text in colours only.
func TestColour(t *testing.T) {
	coloured := render(t, HumanOptions{Style: Style{Colour: true}})
	if !strings.Contains(coloured, "\x1b[32mPASS\x1b[0m") {
		t.Error("no green")
	}
	var stripped strings.Builder
	for rest := coloured; rest != ""; {
		before, after, found := strings.Cut(rest, "\x1b[")
		stripped.WriteString(before)
		rest = ""
		if found {
			_, rest, _ = strings.Cut(after, "m")
		}
	}
	if stripped.String() != plain {
		t.Errorf("got:\n%s", &stripped)
	}
}

func TestNarrow(t *testing.T) {
	for _, line := range strings.Split(render(t, HumanOptions{Width: 40}), "\n") {
		if strings.HasPrefix(line, "PASS") && len(line) != 40 {
			t.Errorf("%d characters: %q", len(line), line)
		}
	}
}

// full is a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

func TestFullDisk(t *testing.T) {
	s := record.NewStream(NewHuman(full{}, HumanOptions{}))
	for _, r := range stream() {
		s.Write(r)
	}
	if err := s.Err(); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Error(err)
	}
}

// The times of a loop are on the clock that its thresholds use, and say which it is when it is not the machine's.
func TestLoopsAreShownOnTheClockOfThresholds(t *testing.T) {
	wall := record.Loop{Name: "ping", Rounds: 10, Min: 1000, Median: 2000, P99: 3000, Max: 4000}
	waited, still, open := wall, wall, wall
	open.Late, open.Latest, open.Dropped = 2, time.Second, 3
	waited.Clock = &record.Times{Min: time.Second, Median: 2 * time.Second, P99: 3 * time.Second, Max: 4 * time.Second}
	still.Clock = &record.Times{}
	for want, loop := range map[string]record.Loop{
		"10 rounds, min 1.00 us, p50 2.00 us, p99 3.00 us, max 4.00 us\n": wall,
		"10 rounds on the virtual clock, min 1.00 s, p50 2.00 s, p99 3.00 s, max 4.00 s; wall-clock p50 " +
			"2.00 us\n": waited,
		"10 rounds in zero virtual time; wall-clock min 1.00 us, p50 2.00 us, p99 3.00 us, max 4.00 us\n": still,
		"max 4.00 us; 2 late, by up to 1.00 s; 3 dropped: due, and not begun in time\n":                   open,
	} {
		var text strings.Builder
		NewHuman(&text, HumanOptions{}).loops([]record.Loop{loop})
		if got := text.String(); !strings.HasSuffix(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestUnknownColumnsAreLeftOut: a column that no measurement has a value for is not shown.
func TestUnknownColumnsAreLeftOut(t *testing.T) {
	rate := record.Measure{What: record.What{Type: record.BandwidthType, Name: "m"}, Messages: 10}
	with := rate
	with.Intervals = []record.Interval{{End: time.Second, Messages: 10, Bytes: 640}}
	for columns, found := range map[int][]record.Measure{5: {rate, rate}, 7: {rate, with}} {
		table := measureTables(found, Units{})[0]
		for _, row := range table.rows {
			if len(row) != columns {
				t.Errorf("%q, want %d columns", row, columns)
			}
		}
	}
}

// TestRowsHaveTheirRole: rows of one name that differ in the role, or in the peer alone.
func TestRowsHaveTheirRole(t *testing.T) {
	row := func(name, role, peer string) record.Measure {
		return record.Measure{What: record.What{Name: name, Type: "bandwidth"}, Role: role, Peer: peer}
	}
	got := measureNames([]record.Measure{
		row("in", "client[0]", "server"), row("in", "client[1]", "server"), row("out", "server", "client[0]"),
		row("out", "server", "client[1]"), row("one", "client[0]", "server"), row("one", "client[0]", "server"),
	})
	want := []string{"in, client[0]", "in, client[1]", "out, to client[0]", "out, to client[1]", "one", "one"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCountersAreShown: those that have grown, in each case, also without faults and of several hosts.
func TestCountersAreShown(t *testing.T) {
	tallies := record.Tallies{Counters: []record.Counter{
		{Device: "soft0", Name: "rcvd_pkts", Grew: 7, Meaning: "packets received"},
		{Device: "soft0", Name: "sent_pkts", Grew: 1 << 40}, {Host: "b", Device: "soft0", Name: "sent_pkts", Grew: 8},
	}}
	for want, options := range map[string]HumanOptions{
		"      counters soft0: rcvd_pkts +7, sent_pkts +1099511627776\n      counters b soft0: sent_pkts +8\n": {},
		"      counter  rcvd_pkts        +7  soft0  packets received\n" +
			"      counter  sent_pkts  +1099511627776  soft0\n" +
			"      counter  sent_pkts        +8  b soft0\n": {Steps: true},
	} {
		var text strings.Builder
		NewHuman(&text, options).tallies(&tallies)
		if got := text.String(); got != want {
			t.Errorf("got\n%s, want\n%s", got, want)
		}
	}
}

// ending shows a run with cases that took so long, one of them with thresholds.
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
				{
					Kind: record.KindThreshold, File: "a.yaml", Line: 9, Column: 3,
					What: "threshold failed: latency p99 < 4us: 5.2 us",
				},
				{
					Kind: record.KindThreshold, File: "a.yaml", Line: 10, Column: 3,
					What: "threshold failed: loop p99 < 1ms: no samples",
				},
			}
			put(record.Record{
				Kind: record.Checked, File: "a.yaml", Case: id,
				Threshold: &record.Threshold{Text: "latency p50 < 4us", Value: "2.1 us", OK: true},
			})
			put(record.Record{
				Kind: record.Checked, File: "a.yaml", Case: id,
				Threshold: &record.Threshold{Text: "latency p99 < 4us", Value: "5.2 us", Line: 9, Column: 3},
			})
			put(record.Record{
				Kind: record.Checked, File: "a.yaml", Case: id,
				Threshold: &record.Threshold{Text: "loop p99 < 1ms", Reason: "no samples", Line: 10, Column: 3},
			})
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
  a.yaml:9:3: threshold failed: latency p99 < 4us: 5.2 us
  a.yaml:10:3: threshold failed: loop p99 < 1ms: no samples
`

func TestThresholdsHaveTextAndValue(t *testing.T) {
	got := ending(t, HumanOptions{Width: withThresholds}, time.Millisecond, time.Millisecond)
	for _, want := range []string{
		"FAIL  1 ", "      threshold passed: latency p50 < 4us: 2.1 us\n",
		"      threshold failed: latency p99 < 4us: 5.2 us\n", notHeld,
		"1 passed, 1 failed (2 thresholds failed)",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "slowest") {
		t.Error("two cases have five slowest")
	}
	if quiet := ending(
		t, HumanOptions{Quiet: true, Width: withThresholds}, time.Millisecond, time.Millisecond,
	); !strings.HasPrefix(quiet, notHeld) {
		t.Errorf("quiet:\n%s", quiet)
	}
}

func TestSlowestFive(t *testing.T) {
	const ms = time.Millisecond
	got := ending(t, HumanOptions{}, 3*ms, 40*ms, 1*ms, 60*ms, 40*ms, 2*ms, 700*ms, 4*ms)
	const want = "\nslowest\n    700 ms  a.yaml::6\n   60.0 ms  a.yaml::3\n   40.0 ms  a.yaml::1\n" +
		"   40.0 ms  a.yaml::4\n   4.00 ms  a.yaml::7\n\n8 passed"
	if !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
	if fast := ending(t, HumanOptions{}, ms, ms, ms, ms, ms, ms); strings.Contains(fast, "slowest") {
		t.Errorf("nothing was slow:\n%s", fast)
	}
}
