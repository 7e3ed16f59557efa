package scenario_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
)

// measurements keeps what was measured and what thresholds said of it.
type measurements struct {
	found   []record.Measure
	checked map[string]record.Threshold
	results []record.Result
}

func (m *measurements) Wants(kind record.Kind) bool {
	return kind == record.Measured || kind == record.Checked || kind == record.CaseEnd
}

func (m *measurements) Record(r *record.Record) error {
	switch r.Kind {
	case record.Measured:
		m.found = append(m.found, *r.Measure)
	case record.Checked:
		m.checked[r.Threshold.Text] = *r.Threshold
	case record.CaseEnd:
		m.results = append(m.results, *r.Result)
	}
	return nil
}

// runMeasured runs a file on soft, with the clock of the file or the wall clock.
func runMeasured(
	t *testing.T, ctx context.Context, config scenario.RunConfig, path string,
) (*measurements, record.Totals) {
	t.Helper()
	seen := &measurements{checked: make(map[string]record.Threshold)}
	config.Consumers = append(config.Consumers, seen)
	if config.Provider == nil {
		config.Open, config.ProviderName = scenario.OpenSoft, "soft"
	}
	totals, err := scenario.Run(ctx, load(t, nil, path), config)
	if err != nil {
		t.Fatal(err)
	}
	return seen, totals
}

// TestMeasure holds what is measured to what is true at any speed.
func TestMeasure(t *testing.T) {
	for name, config := range map[string]scenario.RunConfig{"virtual clock": {}, "wall clock": {Provider: soft(t)}} {
		t.Run(name, func(t *testing.T) {
			seen, totals := runMeasured(t, t.Context(), config, "testdata/run/measure.yaml")
			if totals.ByThreshold != 1 || len(seen.found) != 27 {
				t.Fatalf("%d measurements, %+v\n%+v", len(seen.found), totals, seen.results)
			}
			for i := range seen.found {
				checkMeasure(t, &seen.found[i])
			}
			checkThresholds(t, seen.checked)
		})
	}
}

// TestStages: each stage has a load, a tag and figures of its own, and its intervals follow those of the stage before.
func TestStages(t *testing.T) {
	seen, totals := runMeasured(t, t.Context(), scenario.RunConfig{}, "testdata/run/stages.yaml")
	if totals.Passed != 1 {
		t.Fatalf("%+v\n%+v", totals, seen.results)
	}
	checkStages(t, seen.found)
	if len(seen.checked) != 3 {
		t.Errorf("%+v", seen.checked)
	}
}

func checkStages(t *testing.T, found []record.Measure) {
	t.Helper()
	type load struct {
		stage, test, role string
		size              int64
		depth, qps        int
	}
	var loads []load
	ends := make(map[string]time.Duration) // of the stages so far, by size and role
	for i := range found {
		m := &found[i]
		checkMeasure(t, m)
		loads = append(loads, load{m.Tags["stage"], m.Tags["test"], m.Role, m.Size, m.Depth, m.QPs})
		if m.Intervals == nil {
			t.Errorf("%s, stage %s: no intervals", m.Name, m.Tags["stage"])
			continue
		}
		key := fmt.Sprint(m.Name, m.Size, m.Role)
		first, last := m.Intervals[0], m.Intervals[len(m.Intervals)-1]
		if begin := ends[key]; first.Begin < begin || first.Begin-begin > time.Minute || last.End <= first.Begin {
			t.Errorf(
				"%s, stage %s: its intervals are from %s to %s, and the stage before it ended at %s", m.Name,
				m.Tags["stage"], first.Begin, last.End, begin,
			)
		}
		if m.Role == "client" {
			ends[key] += m.Took
		}
	}
	var want []load
	for _, size := range []int64{64, 4096} {
		for _, each := range []load{
			{stage: "1", depth: 2}, {stage: "deep", depth: 16, qps: 2}, {stage: "slow", depth: 128},
		} {
			for _, role := range []string{"client", "server"} {
				want = append(want, load{each.stage, "load", role, size, each.depth, each.qps})
			}
		}
	}
	want = append(want, load{"1", "", "client", 0, 0, 0}, load{"2", "", "client", 0, 0, 0})
	if !slices.Equal(loads, want) {
		t.Errorf("loads %+v\nnot %+v", loads, want)
	}
}

func checkMeasure(t *testing.T, m *record.Measure) {
	t.Helper()
	if m.Name == "" || m.Line == 0 || m.Column == 0 || m.Role == m.Peer || m.Messages == 0 || m.Took <= 0 {
		t.Errorf("%+v", m)
	}
	if m.Type != "connect" && m.Bytes != m.Messages*uint64(m.Size) {
		t.Errorf("%s: %d bytes in %d messages of %d", m.Name, m.Bytes, m.Messages, m.Size)
	}
	want := float64(m.Bytes) * 8 / m.Took.Seconds()
	if m.Type != "bandwidth" {
		want = 0 // who waits for each answer has no bandwidth to speak of
	}
	if math.Abs(m.BitsPerSecond-want) > want/1e6 {
		t.Errorf("%s: %g bit/s, want %g", m.Name, m.BitsPerSecond, want)
	}
	if (m.Type == "bandwidth") != (m.Latency == nil) {
		t.Errorf("%s: %d distributions of %s", m.Name, len(m.Latency), m.Type)
	}
	for _, d := range m.Latency {
		if d.Count != int64(m.Messages) || d.Min > d.P50 || d.P50 > d.P99 || d.P99 > d.Max ||
			d.Mean < float64(d.Min) || d.Mean > float64(d.Max) {
			t.Errorf("%s: %+v", m.Name, d)
		}
		if (d.Took > 0) != (m.Name == "in lockstep") || d.Took > 0 && d.Took < time.Duration(d.Max) {
			t.Errorf("%s: all of them took %s: %+v", m.Name, d.Took, d)
		}
		if (d.HDR == "") != (m.Name == "asleep") {
			t.Errorf("%s: the histogram is kept: %t", m.Name, d.HDR != "")
		}
		if d.HDR == "" {
			continue
		}
		if h, err := hdr.Decode([]byte(d.HDR)); err != nil || h.TotalCount() != d.Count {
			t.Errorf("%s: %v in the histogram, %v", m.Name, h.TotalCount(), err)
		}
	}
	var sum uint64
	for i, interval := range m.Intervals {
		sum += interval.Messages
		if i > 0 && interval.Begin < m.Intervals[i-1].Begin {
			t.Errorf("%s: the intervals are not in order", m.Name)
		}
	}
	if (m.Name == "several" || m.Tags["stage"] != "") != (m.Intervals != nil) ||
		m.Intervals != nil && sum != m.Messages {
		t.Errorf("%s: %d intervals of %d messages together, want %d", m.Name, len(m.Intervals), sum, m.Messages)
	}
}

func checkThresholds(t *testing.T, checked map[string]record.Threshold) {
	t.Helper()
	broken := map[string]string{
		"latency{test=no_such} count == 50":               "no samples: the case",
		"bandwidth{test=sizes} min > 0":                   "no samples: there are no intervals",
		"latency{test=lat_SEND} p99 < 1ns":                "",
		"latency{test=lat_SEND} p99 < baseline.p99 * 1.1": "no baseline",
	}
	for text, threshold := range checked {
		reason, isBroken := broken[text]
		if threshold.OK == isBroken || !strings.HasPrefix(threshold.Reason, reason) ||
			threshold.Value == "" && reason == "" {
			t.Errorf("%+v", threshold)
		}
	}
	if len(checked) != 18 {
		t.Errorf("%d thresholds", len(checked))
	}
}

// TestMeasureBaseline: with an earlier run, limits refer to what it found of the same measurement.
func TestMeasureBaseline(t *testing.T) {
	const path = "testdata/run/measure_baseline.yaml"
	first, _ := runMeasured(t, t.Context(), scenario.RunConfig{}, path)
	earlier := &record.Earlier{}
	for _, m := range first.found {
		for i := range m.Latency {
			m.Latency[i].P50 = 1000
		}
		m.BitsPerSecond = 1e18
		earlier.Add(m)
	}
	second, _ := runMeasured(t, t.Context(), scenario.RunConfig{Baseline: record.Baseline{path: earlier}}, path)
	want := map[string]bool{
		"latency p50 > baseline.p50 * 0.000001":           true,
		"latency p50 < baseline.p50 * 0.000001":           false,
		"bandwidth avg >= baseline.avg * 0.97":            false,
		"bandwidth{role=server} avg < baseline.avg + 1e9": true,
	}
	for text, ok := range want {
		if got, has := second.checked[text]; !has || got.OK != ok || got.Reason != "" {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if len(first.checked) != 0 || len(second.checked) != len(want) {
		t.Errorf("%d thresholds without a baseline, %d with one", len(first.checked), len(second.checked))
	}
}

// TestMeasureEndsEarly: thresholds and the death of a role end measurements that would take minutes.
func TestMeasureEndsEarly(t *testing.T) {
	seen, totals := runMeasured(t, t.Context(), scenario.RunConfig{}, "testdata/run/measure_abort.yaml")
	if totals.Failed != 2 || totals.ByThreshold != 1 || len(seen.found) != 2 {
		t.Fatalf("%+v, %+v", totals, seen.results)
	}
	for i := range seen.found {
		if m := &seen.found[i]; !m.Cut || m.Messages == 0 || m.Took < 10*time.Millisecond {
			t.Errorf("%+v", m)
		}
	}
	for text, threshold := range seen.checked {
		if threshold.OK || threshold.Value == "" {
			t.Errorf("%s: %+v", text, threshold)
		}
	}
	if what := seen.results[1].Failures[0].What; what != "role server died during a measurement" {
		t.Error(what)
	}
}

// endsMeasurement is called when a case measures something.
type endsMeasurement func()

func (endsMeasurement) Wants(kind record.Kind) bool { return kind == record.CaseStart }

func (end endsMeasurement) Record(r *record.Record) error {
	if r.Kind == record.CaseStart {
		go func() {
			for r.Start.Progress() == "" {
				time.Sleep(time.Millisecond)
			}
			time.Sleep(50 * time.Millisecond) // for the parallel measurements
			end()
		}()
	}
	return nil
}

// TestMeasureInterrupted: the end of a run ends its measurements, and nothing is left of them.
func TestMeasureInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	provider := soft(t)
	config := scenario.RunConfig{Provider: provider, Consumers: []record.Consumer{endsMeasurement(cancel)}}
	seen, totals := runMeasured(t, ctx, config, "testdata/run/measure_endless.yaml")
	if !totals.Interrupted || len(seen.found) != 0 || seen.results[0].Status != record.Interrupted {
		t.Errorf("%+v, %+v", totals, seen.results)
	}
	if f := seen.results[0].Failures; len(f) != 1 || f[0].Kind != "stopped" || f[0].Line == 0 {
		t.Errorf("what was cut off is not reported: %+v", f)
	}
	if live := provider.Live(); live.Total() != 0 {
		t.Errorf("still alive: %v", live)
	}
}

// TestMeasureAtomic: on a device without atomics the case is skipped, and says why.
func TestMeasureAtomic(t *testing.T) {
	provider := soft(t)
	device, err := provider.DefaultDevice()
	if err != nil {
		t.Fatal(err)
	}
	attr, err := device.Attr()
	if err != nil {
		t.Fatal(err)
	}
	seen, totals := runMeasured(
		t, t.Context(), scenario.RunConfig{Provider: provider}, "testdata/run/measure_atomic.yaml",
	)
	switch {
	case attr.Atomic && (totals.Passed != 1 || len(seen.found) != 4):
		t.Errorf("%d measurements, %+v\n%+v", len(seen.found), totals, seen.results)
	case !attr.Atomic && (totals.Skipped != 1 || !strings.Contains(seen.results[0].Reason, "device.atomic")):
		t.Errorf("%+v, %+v", totals, seen.results)
	}
}

// TestMeasureLate: a late completion of its own does not make an end of a latency miss the last message.
func TestMeasureLate(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	if totals := onOwn(
		t, "testdata/run/measure_late.yaml", terminal.NewHuman(&text, terminal.HumanOptions{}),
	); totals.Passed != 1 {
		t.Errorf("%+v\n%s", totals, &text)
	}
}

// TestMeasureTooFew: a size with fewer messages than min_messages fails the step, after the other sizes were measured.
func TestMeasureTooFew(t *testing.T) {
	t.Parallel()
	seen, totals := runMeasured(t, t.Context(), scenario.RunConfig{}, "testdata/run/measure_too_few.yaml")
	if totals.Passed != 2 || totals.Failed != 2 || len(seen.found) != 5 {
		t.Fatalf("%+v, %d measurements", totals, len(seen.found))
	}
	for i, what := range map[int]string{
		0: "client completed 10 messages of 64B", 3: "node[0] completed 10 messages of 64B",
	} {
		failure := seen.results[i].Failures[0]
		if !strings.Contains(failure.What, what) || failure.Expected != "at least 11" || failure.Got != "10" {
			t.Errorf("%+v", failure)
		}
	}
	want := "threshold failed: bandwidth count > 0: too few samples of bandwidth SEND, 64B, node[0] and node[1]: 10"
	if all := seen.results[3].Failures; len(all) != 2 || all[1].What != want {
		t.Errorf("%+v", all)
	}
}

// partsSeen asks how far the case is whenever a size was measured.
type partsSeen struct {
	progress func() string
	texts    []string
}

func (p *partsSeen) Wants(kind record.Kind) bool {
	return kind == record.CaseStart || kind == record.Measured
}

func (p *partsSeen) Record(r *record.Record) error {
	if r.Kind == record.CaseStart {
		p.progress = r.Start.Progress
		return nil
	}
	p.texts = append(p.texts, p.progress())
	return nil
}

// TestMeasureShowsItsParts: the progress has the size that is being measured.
func TestMeasureShowsItsParts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "parts.yaml")
	const lab = `rdmarun: v1
roles: {client: {}, server: {}}
steps:
  - repeat: 2
    do: [{measure: {kind: latency, op: SEND, from: client, to: server, sizes: [64, 4KiB], iterations: 20}}]
`
	if err := os.WriteFile(path, []byte(lab), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := &partsSeen{}
	if totals := onOwn(t, path, seen); totals.Passed != 1 {
		t.Errorf("%+v", totals)
	}
	const want = "round 1/2, SEND 64B (1/2); round 1/2, SEND 4KiB (2/2); round 2/2, SEND 64B (1/2); round 2/2, " +
		"SEND 4KiB (2/2)"
	if got := strings.Join(seen.texts, "; "); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if left := seen.progress(); left != "" {
		t.Errorf("after the end: %s", left)
	}
}

// TestThresholdsOfCases: a threshold concerns the cases that have a step measured so, and no other; one that such a
// step has no sample for fails.
func TestThresholdsOfCases(t *testing.T) {
	const path = "testdata/run/thresholds_of_cases.yaml"
	seen := &thresholdCollector{}
	totals := onOwn(t, path, seen)
	checked := make(map[string][]string)
	for i, threshold := range seen.checked {
		name := strings.TrimPrefix(seen.cases[i], path+"::")
		checked[name] = append(checked[name], map[bool]string{true: "", false: "FAILS "}[threshold.OK]+threshold.Text)
	}
	const hour, large = "duration value < 1h", "FAILS bandwidth{size>=64KiB} count == 100"
	want := map[string][]string{
		"measures nothing": {hour},
		"by a fragment":    {"bandwidth{test=fragment} count == 100", large, hour},
		"part[part=kept,least=100]": {
			"bandwidth{test=own} count == 100", large, hour, "bandwidth{test=own} count >= least",
			"bandwidth{test=own} messages > least / 1000",
		},
		"part[part=left,least=100]": {
			large, hour, "bandwidth{test=own} count >= least", "bandwidth{test=own} messages > least / 1000",
			"duration value < 1m",
		},
		"without a sample":               {"FAILS bandwidth{test=fragment} count == 100", large, hour},
		"behind what is false[on=false]": {hour},
		"with a tag that is known in the run[part=kept]": {
			"FAILS bandwidth{test=fragment} count == 100", "FAILS bandwidth{test=own} count == 100", large, hour,
		},
	}
	if !maps.EqualFunc(checked, want, slices.Equal) {
		t.Errorf("%+v\n got %q\nwant %q", totals, checked, want)
	}
}

// TestWorstSample: what a threshold shows is the sample that breaks it most, or comes nearest to that.
func TestWorstSample(t *testing.T) {
	seen := &thresholdCollector{}
	onOwn(t, "testdata/run/worst.yaml", seen)
	want := []string{"4.00 s (longest)", "1.00 s (shortest)", "4.00 s (longest)", "4.00 s", "1.00 s"}
	for i, threshold := range seen.checked {
		if i >= len(want) || threshold.Value != want[i] || threshold.OK != (i > 2) {
			t.Errorf("%d: %+v, want %q", i, threshold, want[i])
		}
	}
	if len(seen.checked) != len(want) {
		t.Errorf("%d limits", len(seen.checked))
	}
}
