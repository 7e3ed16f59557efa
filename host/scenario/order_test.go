package scenario_test

import (
	"encoding/json"
	"strings"
	"testing"

	"rdmarun/host/record"
)

// timeless keeps records without what another run cannot have: the wall's times, and numbers given out.
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
	if f := seen.results[3].Failures; len(f) != 1 || !strings.Contains(f[0].What, "never") || f[0].Expected != "the branch of role client" {
		t.Errorf("nobody comes: %+v", f)
	}
	var lines []string
	for _, line := range seen.lines {
		lines = append(lines, line.Text)
	}
	text := strings.Join(lines, ", ")
	if !strings.HasPrefix(text, "client comes, server comes, waiter comes, ") {
		t.Errorf("order of arrival: %s", text)
	}
	if !strings.Contains(text, "a 1, b 1, c 1, a 2, b 2, c 2, d 1, a 3") && !strings.Contains(text, "a 1, b 1, c 1, d 1, a 2, b 2, c 2, a 3") {
		t.Errorf("order of branches: %s", text)
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
				t.Fatalf("record %d of %d and %d:\n%s\n%s", i, len(first.lines), len(again.lines), first.lines[i], again.lines[i])
			}
		}
	}
}
