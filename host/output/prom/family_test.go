package prom

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"rdmarun/host/record"
)

// library is what Prometheus' own library writes for a family, as the reference.
func library(t *testing.T, f *family) string {
	t.Helper()
	tags := slices.Sorted(maps.Keys(f.tags))
	description := prometheus.NewDesc(f.name, f.help, append(slices.Clone(f.labels), tagLabels(tags)...), nil)
	var metrics []prometheus.Metric
	add := func(made prometheus.Metric, err error) {
		if err != nil {
			t.Fatal(err)
		}
		metrics = append(metrics, made)
	}
	for key, value := range f.values {
		add(prometheus.NewConstMetric(description, prometheus.GaugeValue, value, f.labelsOf(key, tags)...))
	}
	seconds := func(ns int64) float64 { return time.Duration(ns).Seconds() }
	for key, d := range f.summaries {
		add(prometheus.NewConstSummary(description, uint64(d.Count), d.Mean*float64(d.Count)/1e9, map[float64]float64{
			0: seconds(d.Min), 0.5: seconds(d.P50), 0.9: seconds(d.P90), 0.99: seconds(d.P99),
			0.999: seconds(d.P999), 0.9999: seconds(d.P9999), 1: seconds(d.Max),
		}, f.labelsOf(key, tags)...))
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(collector{description, metrics})
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	encoder := expfmt.NewEncoder(&text, expfmt.NewFormat(expfmt.TypeOpenMetrics))
	for _, each := range gathered {
		if err := encoder.Encode(each); err != nil {
			t.Fatal(err)
		}
	}
	return text.String()
}

type collector struct {
	description *prometheus.Desc
	metrics     []prometheus.Metric
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) { out <- c.description }

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	for _, each := range c.metrics {
		out <- each
	}
}

// hostile are values of labels that some reader could take for something else.
var hostile = []string{
	"", "a", "a b", `"`, `\`, `\n`, "\n", "\r\n", "a\x00b", "\x7f", "{", `",b="`, "# EOF", "\xff", "\xc3", "µs",
	"\u2028", "日本", " ",
	strings.Repeat("long ", 2000),
}

func TestFamilyIsWhatTheLibraryWrites(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func() string { return hostile[random.IntN(len(hostile))] + hostile[random.IntN(len(hostile))] }
	numbers := []float64{
		0, math.Copysign(0, -1), 1, -1, 1.5, 1e21, 1e20, 123456789, 1e-7, math.NaN(), math.Inf(1), math.Inf(-1),
		math.MaxFloat64, 1784268000.123456,
	}
	for round := range 60 {
		names := []string{"file", "case", "zone", "a"}[:random.IntN(5)]
		m := describe("metric", "Says \"what\" \\ it\nis.", names...)
		f := &family{
			metric: m, values: make(map[string]float64), summaries: make(map[string]record.Distribution),
			tags: make(map[string]bool),
		}
		for range random.IntN(8) + 1 {
			var labels []string
			for range names {
				labels = append(labels, some())
			}
			tags := make(map[string]string)
			for range random.IntN(3) {
				if len(names) > 0 {
					tags[[]string{"a-b", "a.b", "zz", "\xfe"}[random.IntN(4)]] = some()
				}
			}
			if round%2 == 0 {
				f.values[f.tagged(labels, tags)] = numbers[random.IntN(len(numbers))]
				continue
			}
			f.summaries[f.tagged(labels, tags)] = record.Distribution{
				Count: random.Int64N(1e9), Mean: 1e6 * random.Float64(), Min: random.Int64N(9), P50: random.Int64N(1e6),
				P90: 2e6, P99: 3e9, Max: 1 << 60,
			}
		}
		var ours bytes.Buffer
		if err := f.write(&ours); err != nil {
			t.Fatal(err)
		}
		if theirs := library(t, f); ours.String() != theirs {
			t.Fatalf("round %d: ours\n%.3000q\ntheirs\n%.3000q", round, ours.String(), theirs)
		}
	}
}

// TestNamesAreValid: names are written without escaping, so none may need it.
func TestNamesAreValid(t *testing.T) {
	all := []*metric{
		runInfo, runStart, runDuration, runComplete, runCases, caseOK, caseDuration, thresholdOK, latency, bandwidth,
		messageRate,
	}
	for _, each := range all {
		if !model.LegacyValidation.IsValidMetricName(each.name) {
			t.Errorf("the metric %q", each.name)
		}
		seen := make(map[string]bool)
		for _, label := range append(slices.Clone(each.labels), tagLabels(hostile)...) {
			if !model.LegacyValidation.IsValidLabelName(label) || seen[label] {
				t.Errorf("the label %q of %s", label, each.name)
			}
			seen[label] = true
		}
	}
}

// TestWriteErrorsAreTold: of a family larger than any buffer, at its beginning, in the middle and at its end.
func TestWriteErrorsAreTold(t *testing.T) {
	f := &family{metric: caseDuration, values: make(map[string]float64)}
	for i := range 1000 {
		f.values[join([]string{"a.yaml", fmt.Sprint(i)})] = 1
	}
	var whole bytes.Buffer
	if err := f.write(&whole); err != nil {
		t.Fatal(err)
	}
	for _, room := range []int{0, 5000, whole.Len() - 1} {
		if err := f.write(&limited{room}); err != errFull {
			t.Errorf("with room for %d bytes of %d: %v", room, whole.Len(), err)
		}
	}
}

var errFull = fmt.Errorf("it is full")

type limited struct{ room int }

// Write implements io.Writer.
func (l *limited) Write(data []byte) (int, error) {
	if len(data) > l.room {
		return 0, errFull
	}
	l.room -= len(data)
	return len(data), nil
}
