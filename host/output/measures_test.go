package output_test

import (
	"encoding/csv"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdmarun/host/output"
	"rdmarun/host/record"
)

// reportOf is a report of a run with cases that have measured something.
func reportOf(t *testing.T, format string, cases ...[]*record.Measure) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report")
	out, err := output.Open(output.Target{Format: format, Path: path}, nil)
	if err != nil {
		t.Fatal(err)
	}
	put := func(r record.Record) {
		r.Version = record.Version
		if err := out.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	put(record.Record{Kind: record.RunStart, Run: &record.Run{Provider: "soft", Cases: len(cases)}})
	for i, measures := range cases {
		id := fmt.Sprintf("lab.yaml::%d", i)
		put(record.Record{Kind: record.CaseStart, File: "lab.yaml", Case: id, Start: &record.Start{Name: id}})
		for _, m := range measures {
			put(record.Record{Kind: record.Measured, File: "lab.yaml", Case: id, Measure: m})
		}
		put(record.Record{
			Kind: record.CaseEnd, File: "lab.yaml", Case: id, Result: &record.Result{Name: id, Status: record.Passed},
		})
	}
	put(record.Record{Kind: record.RunEnd, Totals: &record.Totals{Passed: len(cases)}})
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sweep is 120 measurements, no two alike: 3 operations, 4 depths, 5 sizes, and a latency and a bandwidth of each.
func sweep(t *testing.T) []*record.Measure {
	var list []*record.Measure
	for _, operation := range []string{"SEND", "RDMA_WRITE", "RDMA_READ"} {
		for _, depth := range []int{1, 2, 16, 128} {
			for size := int64(64); size <= 16384; size *= 4 {
				for _, kind := range []string{"latency", "bandwidth"} {
					m := measured(t, size)
					m.Name, m.Type, m.Operation, m.Depth = "sweep of "+kind, kind, operation, depth
					m.Tags = map[string]string{"depth": fmt.Sprint(depth)}
					m.Messages = uint64(len(list) + 1)
					if kind == "bandwidth" {
						m.Latency = nil
					}
					list = append(list, m)
				}
			}
		}
	}
	if len(list) != 120 {
		t.Fatalf("%d measurements", len(list))
	}
	return list
}

// TestPageHasEveryMeasurement: 120 in, 120 in the page, and each in a picture.
func TestPageHasEveryMeasurement(t *testing.T) {
	page := reportOf(t, "html", sweep(t))
	rows := regexp.MustCompile(
		`<td>sweep of \w+<small>[^<]*</small></td><td[^>]*>client</td><td[^>]*>[^<]*</td><td[^>]*>(\d+)</td>`,
	).FindAllStringSubmatch(page, -1)
	seen := make(map[string]bool)
	for _, row := range rows {
		seen[row[1]] = true
	}
	if len(rows) != 120 || len(seen) != 120 {
		t.Errorf("%d rows of %d measurements, want 120", len(rows), len(seen))
	}
	legends := make(map[string]int) // by the figure's title, less its number
	names := make(map[string]bool)
	number := regexp.MustCompile(` \(\d+ of \d+\)$`)
	for _, figure := range regexp.MustCompile(
		`(?s)<figcaption>(.*?)</figcaption><ul class="legend">(.*?)</ul>`,
	).FindAllStringSubmatch(page, -1) {
		title := number.ReplaceAllString(figure[1], "")
		for _, item := range regexp.MustCompile(`<li[^>]*>([^<]*)</li>`).FindAllStringSubmatch(figure[2], -1) {
			if names[title+item[1]] {
				t.Errorf("%s has two curves %q", title, item[1])
			}
			names[title+item[1]] = true
			legends[title]++
		}
	}
	want := map[string]int{
		"Bandwidth by message size": 12, "Latency p50 by message size": 12, "sweep of latency, by percentile": 60,
		"sweep of latency, distribution by message size":             12,
		"sweep of latency, distribution up to the 99.9th percentile": 60, "sweep of latency, bandwidth over time": 60,
		"sweep of bandwidth, bandwidth over time": 60,
	}
	if !maps.Equal(legends, want) {
		t.Errorf("the pictures have %v\nwant %v", legends, want)
	}
}

// TestPageSaysWhatHasNoPicture: the table has everything, and the page says what the pictures leave out.
func TestPageSaysWhatHasNoPicture(t *testing.T) {
	const many = 5000
	one := measured(t, 64)
	var list []*record.Measure
	for i := range many {
		m := *one
		m.Name = fmt.Sprintf("number %d", i)
		list = append(list, &m)
	}
	page := reportOf(t, "html", list)
	if n := strings.Count(page, "<td>number "); n != many {
		t.Errorf("%d of %d measurements are in the page", n, many)
	}
	if !regexp.MustCompile(`Measurements of \d{4} more names are in the table, without pictures`).MatchString(page) {
		t.Error("the page does not say what has no picture")
	}
}

// TestPageOfManyCasesHasTheirMeasurements: cases beyond some hundreds are shown without their steps, but with their
// figures.
func TestPageOfManyCasesHasTheirMeasurements(t *testing.T) {
	m := measured(t, 64)
	m.Latency, m.Intervals = nil, nil
	cases := make([][]*record.Measure, 350)
	for i := range cases {
		cases[i] = []*record.Measure{m}
	}
	if n := strings.Count(reportOf(t, "html", cases...), "<td>write latency"); n != len(cases) {
		t.Errorf("%d of %d cases show what they measured", n, len(cases))
	}
}

func TestTableHasTagsOfEachMeasurement(t *testing.T) {
	rows, err := csv.NewReader(strings.NewReader(reportOf(t, "csv", sweep(t)))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	tags, kind := slices.Index(rows[0], "tags"), slices.Index(rows[0], "kind")
	found := make(map[string]int)
	for _, row := range rows[1:] {
		if row[kind] == "measure" {
			found[row[tags]]++
		}
	}
	if want := map[string]int{"depth=1": 30, "depth=2": 30, "depth=16": 30, "depth=128": 30}; !maps.Equal(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
}

// TestMetricsHaveTags: each measurement is a series of its own, with its tags as labels.
func TestMetricsHaveTags(t *testing.T) {
	list := sweep(t)
	word := *list[1]
	word.Name, word.Tags = "tagged", map[string]string{"a-b": "1", "a.b": "2", "smoke": ""}
	text := reportOf(t, "prom", append(list, &word))
	for metric, want := range map[string]int{
		"rdmarun_messages_per_second": 120, "rdmarun_bandwidth_bits_per_second": 60,
	} {
		series := regexp.MustCompile(`(?m)^`+metric+`\{.*tag_depth="\d+".*\} `).FindAllString(text, -1)
		if len(series) != want {
			t.Errorf("%d series of %s with a tag, want %d", len(series), metric, want)
		}
	}
	if n := strings.Count(text, "rdmarun_latency_seconds_count{"); n != 60 {
		t.Errorf("%d series of latency, want 60", n)
	}
	want := `tag_a_b="1",tag_a_b_2="2",tag_depth="",tag_smoke="true",test="tagged"}`
	if !strings.Contains(text, want) {
		t.Errorf("there is no %s", want)
	}
}

// TestEveryOutputCountsAlike: a case with a broken threshold is one that failed in every output.
func TestEveryOutputCountsAlike(t *testing.T) {
	for format, want := range map[string][]string{
		"junit": {
			`<testsuites name="rdmarun" time="0.012" tests="8" errors="2" failures="2">`,
			`<failure message="threshold failed: p99 &lt; 4us: 5.2 us" type="threshold">`,
		},
		"html": {`<b>2</b> failed`, `<b>2</b> error`, `<b>1</b> passed`, `<b>1</b> flaky`},
		"tap":  {"not ok 7 - too slow\n"},
		"prom": {`rdmarun_case_ok{case="too slow",file="lab.yaml",name="too slow"} 0`},
		"csv":  {"case,lab.yaml,too slow,0,failed,threshold failed: p99 < 4us: 5.2 us,"},
	} {
		text, err := os.ReadFile(write(t, format, true))
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range want {
			if !strings.Contains(string(text), each) {
				t.Errorf("%s: there is no %s", format, each)
			}
		}
	}
}
