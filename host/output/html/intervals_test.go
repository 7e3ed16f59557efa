package html

import (
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/record"
)

// TestIntervalChartsCompare: the chart over time has the curves of the baseline, and a line for each threshold with
// one value. It has the line also if another threshold has values by size.
func TestIntervalChartsCompare(t *testing.T) {
	measure := func(size int64, gigabits uint64) record.Measure {
		m := record.Measure{
			What: record.What{Name: "bw", Type: "bandwidth"}, How: record.How{Size: size}, Role: "client",
		}
		for i := range time.Duration(4) {
			m.Intervals = append(m.Intervals, record.Interval{
				Begin: i * time.Second, End: (i + 1) * time.Second, Bytes: gigabits * 1e9 / 8, Messages: 1,
			})
		}
		return m
	}
	bound := func(size int64, value float64) record.Bound {
		return record.Bound{Name: "bw", Size: size, Value: value}
	}
	fixed := record.Threshold{
		Text: "bandwidth avg > 1Gbit/s", Metric: "bandwidth", Field: "avg", Bounds: []record.Bound{
			bound(64, 1e9), bound(4096, 1e9),
		},
	}
	relative := record.Threshold{
		Text: "bandwidth avg > baseline.avg", Metric: "bandwidth", Field: "avg", Bounds: []record.Bound{
			bound(64, 20e9), bound(4096, 30e9),
		},
	}
	one := relative
	one.Bounds = one.Bounds[:1]
	for name, test := range map[string]struct {
		thresholds []record.Threshold
		before     []record.Measure
		says, not  string
		legend     []string
	}{
		"a limit next to one by size": {
			[]record.Threshold{fixed, relative}, nil, "bandwidth avg > 1Gbit/s from 1 Gbit/s", "avg > baseline.avg",
			[]string{"threshold"},
		},
		"one size of a baseline": {
			[]record.Threshold{fixed, one}, nil, "bandwidth avg > baseline.avg from 20 Gbit/s", "of the baseline",
			[]string{"threshold"},
		},
		"a baseline": {
			nil, []record.Measure{measure(64, 21), measure(4096, 31)},
			"64B client of the baseline from 21 Gbit/s", "#2", []string{"baseline"},
		},
	} {
		g := &measureGroup{
			name: "bw", now: []record.Measure{measure(64, 22), measure(4096, 32)}, before: test.before,
			thresholds: test.thresholds,
		}
		charts := intervalCharts(g)
		if len(charts) != 1 {
			t.Fatalf("%s: %d charts", name, len(charts))
		}
		says := strings.NewReplacer("\u202f", " ", "&gt;", ">").Replace(charts[0].Says)
		if !strings.Contains(says, test.says) || strings.Contains(says, test.not) {
			t.Errorf("%s: it says %s", name, says)
		}
		var legend []string
		for _, each := range charts[0].Legend {
			legend = append(legend, each.Name)
		}
		if want := append([]string{"64B client", "4KiB client"}, test.legend...); !slices.Equal(
			strings.Split(strings.ReplaceAll(strings.Join(legend, "|"), "\u202f", " "), "|"), want,
		) {
			t.Errorf("%s: the legend has %q, want %q", name, legend, want)
		}
	}
}
