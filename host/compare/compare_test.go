package compare

import (
	"bytes"
	"maps"
	"math"
	"slices"
	"testing"
	"time"

	"rdmarun/host/output/jsonl"
	"rdmarun/host/record"
)

func TestMannWhitney(t *testing.T) {
	many := func(from float64) []float64 {
		list := make([]float64, 50)
		for i := range list {
			list[i] = from + float64(i)
		}
		return list
	}
	for _, test := range []struct {
		name string
		a, b []float64
		want float64
	}{
		// 2 of the C(8,4) = 70 arrangements are as far apart.
		{"apart", []float64{1, 2, 3, 4}, []float64{5, 6, 7, 8}, 2.0 / 70},
		{"apart, the other way", []float64{5, 6, 7, 8}, []float64{1, 2, 3, 4}, 2.0 / 70},
		// C(10,5) = 252; U = 1 has one more arrangement than U = 0.
		{"one pair crosses", []float64{1, 2, 3, 4, 6}, []float64{5, 7, 8, 9, 10}, 4.0 / 252},
		{"equal", []float64{3, 3, 3, 3}, []float64{3, 3, 3, 3}, 1},
		{"many, the same", many(0), many(0), 1},
		{"many, apart", many(0), many(1000), 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := mannWhitney(test.a, test.b); math.Abs(got-test.want) > 1e-9 {
				t.Errorf("p = %v, want %v", got, test.want)
			}
		})
	}
}

type each struct {
	id     string
	status record.Status
	took   []time.Duration
}

func runOf(t *testing.T, provider string, list ...each) *Run {
	t.Helper()
	var file bytes.Buffer
	stream := record.NewStream(jsonl.To(&file, "test"))
	stream.Write(&record.Record{Kind: record.RunStart, Run: &record.Run{Provider: provider}})
	for _, c := range list {
		for i, took := range c.took {
			stream.Write(&record.Record{
				Kind: record.CaseEnd, File: "a.yaml", Case: c.id, Attempt: i,
				Result: &record.Result{Name: c.id, Status: c.status, Took: took},
			})
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	run, err := Read(&file, provider)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestCompare(t *testing.T) {
	few := []time.Duration{time.Millisecond}
	short := []time.Duration{100, 110, 120, 130, 140}
	long := []time.Duration{200, 210, 220, 230, 240}
	before := runOf(t, "soft", each{"gone", record.Passed, few}, each{"breaks", record.Passed, few},
		each{"slower", record.Passed, short}, each{"faster", record.Passed, long}, each{"same", record.Passed, short})
	after := runOf(t, "verbs", each{"breaks", record.Failed, few}, each{"slower", record.Passed, long},
		each{"faster", record.Passed, short}, each{"same", record.Passed, short}, each{"new", record.Passed, few})
	result := Compare(before, after)
	if len(result.Vanished) != 1 || result.Vanished[0] != "gone" || len(result.Appeared) != 1 ||
		result.Appeared[0] != "new" {
		t.Errorf("vanished %v, appeared %v", result.Vanished, result.Appeared)
	}
	if len(result.Changed) != 1 || result.Changed[0] != (Change{"breaks", "passed", "failed", true}) {
		t.Errorf("changed %v", result.Changed)
	}
	if len(result.Different) != 1 || result.Different[0] != (Fact{"", "provider", "soft", "verbs", true}) {
		t.Errorf("different %v", result.Different)
	}
	want := map[string]string{"slower": "worse", "faster": "better", "same": "same"}
	for _, row := range result.Rows {
		if row.Result != want[row.Case] {
			t.Errorf("%s: %s (p = %v), want %s", row.Case, row.Result, row.P, want[row.Case])
		}
		delete(want, row.Case)
	}
	if len(want) > 0 || !result.Worse() {
		t.Errorf("no rows of %v, worse %v", want, result.Worse())
	}
}

// TestUnlikeRuns: what only one of two runs has, and other parameters, are reported. The runs are then not comparable.
func TestUnlikeRuns(t *testing.T) {
	run := func(depth string, sizes ...int64) *Run {
		run := NewRun("run")
		put := func(r record.Record) {
			r.Case = "c"
			if err := run.Record(&r); err != nil {
				t.Fatal(err)
			}
		}
		put(record.Record{Kind: record.CaseStart, Start: &record.Start{Params: map[string]string{"depth": depth}}})
		for _, size := range sizes {
			put(record.Record{Kind: record.Measured, Measure: &record.Measure{
				What: record.What{Name: "bw", Type: "bandwidth"}, Role: "client", How: record.How{Size: size}, Took: 1,
				BitsPerSecond: 5,
			}})
		}
		put(record.Record{Kind: record.CaseEnd, Result: &record.Result{Status: record.Passed}})
		put(record.Record{Kind: record.RunEnd, Totals: &record.Totals{Passed: 1}})
		return run
	}
	result := Compare(run("1", 64, 128), run("2", 64, 256))
	results := make(map[string]string)
	for _, row := range result.Rows {
		results[row.Metric] = row.Result
	}
	want := map[string]string{
		"duration": "unknown", "bw client 64B bandwidth": "unknown", "bw client 128B bandwidth": "vanished",
		"bw client 256B bandwidth": "new",
	}
	if !maps.Equal(results, want) || result.Worse() || result.Comparable() {
		t.Errorf("%v, worse %v, comparable %v", results, result.Worse(), result.Comparable())
	}
	if len(result.Different) != 1 || result.Different[0] != (Fact{"c", "depth", "1", "2", true}) {
		t.Errorf("%+v", result.Different)
	}
	cut, interrupted := run("1", 64), run("1", 64)
	cut.Complete = false
	end := &record.Record{Kind: record.RunEnd, Totals: &record.Totals{Interrupted: true}}
	if err := interrupted.Record(end); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		before, after *Run
		comparable    bool
	}{
		"records that end early": {run("1", 64), cut, false},
		"a run that was stopped": {interrupted, run("1", 64), false},
		"the same":               {run("1", 64), run("1", 64), true},
		"other parameters":       {run("1", 64), run("2", 64), false},
		"a new metric":           {run("1", 64), run("1", 64, 128), false},
		"a lost metric":          {run("1", 64, 128), run("1", 64), false},
		"a lost case":            {run("1", 64), NewRun("empty"), false},
	} {
		if got := Compare(test.before, test.after).Comparable(); got != test.comparable {
			t.Errorf("%s: comparable %v", name, got)
		}
	}
}

// TestFiguresOfFailures: a case that fails is compared by what it has measured, but not by its duration.  Where it has
// passed at another attempt, only what that has measured counts.
func TestFiguresOfFailures(t *testing.T) {
	run := func(status record.Status, bandwidth float64, attempts ...record.Status) *Run {
		run := NewRun("run")
		for attempt, status := range append([]record.Status{status}, attempts...) {
			for _, each := range []record.Record{
				{Kind: record.Measured, Measure: &record.Measure{
					What: record.What{Name: "bw", Type: "bandwidth"}, Role: "client", How: record.How{Size: 64},
					Took: 1, BitsPerSecond: bandwidth, TooFew: bandwidth == 0,
				}},
				{Kind: record.CaseEnd, Result: &record.Result{Status: status, Took: time.Second}},
			} {
				each.Case, each.Attempt = "c", attempt
				if err := run.Record(&each); err != nil {
					t.Fatal(err)
				}
			}
			bandwidth /= 2
		}
		return run
	}
	for name, test := range map[string]struct {
		before, after *Run
		rows          []Row
		worse         bool
	}{
		"fails": {
			run(record.Passed, 8), run(record.Failed, 0),
			[]Row{{Metric: "bw client 64B bandwidth", Before: 8, After: 0, Samples: [2]int{1, 1}}}, true,
		},
		"passes": {
			run(record.Failed, 4), run(record.Passed, 8),
			[]Row{{Metric: "bw client 64B bandwidth", Before: 4, After: 8, Samples: [2]int{1, 1}}}, false,
		},
		"passed once": {
			run(record.Passed, 8), run(record.Failed, 4, record.Passed),
			[]Row{
				{Metric: "bw client 64B bandwidth", Before: 8, After: 2, Samples: [2]int{1, 1}},
				{Metric: "duration", Before: 1, After: 1, Samples: [2]int{1, 1}},
			}, true,
		},
		"error": {run(record.Passed, 8), run(record.Errored, 4), nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			result := Compare(test.before, test.after)
			var got []Row
			for _, row := range result.Rows {
				got = append(got, Row{Metric: row.Metric, Before: row.Before, After: row.After, Samples: row.Samples})
			}
			if !slices.Equal(got, test.rows) || result.Worse() != test.worse {
				t.Errorf("%+v, want %+v; worse %v", got, test.rows, result.Worse())
			}
		})
	}
	if row := Compare(run(record.Passed, 8), run(record.Failed, 0)).Rows[0]; row.Change() != -1 {
		t.Errorf("a change of %v to 0", row.Change())
	}
}

// Among many metrics that did not change some have a low P by chance; none of them may count.
func TestManyMetricsByChance(t *testing.T) {
	rows := func(ps ...float64) []Row {
		list := make([]Row, len(ps))
		for i, p := range ps {
			list[i] = Row{P: p, Before: 1, After: 2, Result: "same"}
		}
		return list
	}
	for name, test := range map[string]struct {
		rows  []Row
		worse int
	}{
		"one":                {rows(0.04), 1},
		"one of four":        {rows(0.9, 0.04, 0.5, 0.3), 0},
		"one of four, sure":  {rows(0.9, 0.001, 0.5, 0.3), 1},
		"all of four":        {rows(0.03, 0.04, 0.01, 0.02), 4},
		"none":               {rows(0.06, 1), 0},
		"nothing measurable": {nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			decide(test.rows)
			worse := 0
			for _, row := range test.rows {
				if row.Result == "worse" {
					worse++
				}
			}
			if worse != test.worse {
				t.Errorf("%d of %d are worse, want %d", worse, len(test.rows), test.worse)
			}
		})
	}
}

func TestMeasurementsOfARun(t *testing.T) {
	run := NewRun("test")
	put := func(r record.Record) {
		if err := run.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	put(record.Record{
		Kind: record.RunStart, Run: &record.Run{Provider: "verbs", Environment: map[string]string{"host": "a"}},
	})
	put(record.Record{Kind: record.DeviceUsed, Device: &record.Device{Name: "mlx5_0", Driver: "mlx5", MTU: 4096}})
	for host, firmware := range map[string]string{"n1": "28.1", "n2": "28.2"} {
		put(record.Record{
			Kind: record.DeviceUsed, Host: host, Device: &record.Device{Name: "mlx5_0", Host: host, Firmware: firmware},
		})
	}
	for attempt := range 2 {
		for _, size := range []int64{64, 4096} {
			put(record.Record{Kind: record.Measured, Case: "c", Attempt: attempt, Measure: &record.Measure{
				What: record.What{Name: "bw", Type: "bandwidth"}, Role: "client", How: record.How{Size: size}, Took: 1,
				BitsPerSecond: float64(size * int64(attempt+1)),
			}})
		}
		put(record.Record{
			Kind: record.CaseEnd, Case: "c", Attempt: attempt, Result: &record.Result{Status: record.Passed},
		})
	}
	put(record.Record{Kind: record.CaseStart, Case: "killed", Start: &record.Start{Name: "killed"}})
	run.Finish()
	if run.Environment["mlx5_0 MTU"] != "4096" || run.Environment["mlx5_0 driver"] != "mlx5" ||
		run.Environment["host"] != "a" {
		t.Errorf("environment %v", run.Environment)
	}
	if e := run.Environment; e["n1 mlx5_0 firmware"] != "28.1" || e["n2 mlx5_0 firmware"] != "28.2" ||
		e["mlx5_0 host"]+e["n1 mlx5_0 host"] != "" {
		t.Errorf("devices of two hosts: %v", e)
	}
	earlier := run.Baseline()["c"]
	if earlier == nil || len(earlier.Results) != 2 || len(earlier.Measures) != 2 ||
		earlier.Measures[1].BitsPerSecond != 8192 {
		t.Errorf("%+v", earlier)
	}
	if run.Baseline()["killed"] != nil {
		t.Errorf("of a killed case there is %v", run.Baseline()["killed"])
	}
	rows := Compare(run, run).Rows
	if len(rows) != 3 || rows[0].Metric != "bw client 64B bandwidth" ||
		rows[1].Metric != "bw client 4KiB bandwidth" || rows[0].Samples != [2]int{2, 2} {
		t.Errorf("%+v", rows)
	}
	for name, want := range map[string]bool{
		"kernel": true, "mlx5_0 firmware": true, "mlx5_0 node GUID": false, "version": false, "governor": true,
	} {
		if matters(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
