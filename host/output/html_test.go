package output_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdmarun/host/output"
	"rdmarun/host/record"
)

// pageOf is the page of a run of so many cases.
func pageOf(t *testing.T, cases int, records ...record.Record) string {
	t.Helper()
	var page bytes.Buffer
	out, err := output.OpenTo(output.Target{Format: "html"}, &page)
	if err != nil {
		t.Fatal(err)
	}
	all := append([]record.Record{{Kind: record.RunStart, Run: &record.Run{Cases: cases}}}, records...)
	for _, each := range append(all, record.Record{Kind: record.RunEnd, Totals: &record.Totals{}}) {
		each.Version = record.Version
		if each.Case != "" && each.File == "" {
			each.File = "file.yaml"
		}
		if err := out.Record(&each); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

func started(id string) record.Record {
	return record.Record{Kind: record.CaseStart, Case: id, Start: &record.Start{Name: id}}
}

func finished(id string, status record.Status, failures ...record.Failure) record.Record {
	return record.Record{
		Kind: record.CaseEnd, Case: id, Result: &record.Result{Name: id, Status: status, Failures: failures},
	}
}

func TestFailuresComeFirst(t *testing.T) {
	var records []record.Record
	for i, status := range []record.Status{
		record.Passed, record.Failed, record.Skipped, record.Errored, record.Passed,
	} {
		id := fmt.Sprintf("case %d", i)
		records = append(records, started(id), finished(id, status))
	}
	var order []string
	for _, match := range regexp.MustCompile(`<details class="case" id="case-(\d)"`).FindAllStringSubmatch(
		pageOf(t, 5, records...), -1,
	) {
		order = append(order, match[1])
	}
	if got := strings.Join(order, " "); got != "2 4 1 3 5" {
		t.Errorf("the cases come in the order %s", got)
	}
}

// TestMeshAlone: the map of a run that has one case is above the list of cases, and of several in the case.
func TestMeshAlone(t *testing.T) {
	for cases, above := range map[int]bool{1: true, 2: false} {
		page := pageOf(
			t, cases, started("mesh"), record.Record{Kind: record.Meshed, Case: "mesh", Mesh: meshOfFour()},
			finished("mesh", record.Passed),
		)
		section, list := strings.Index(page, `<section class="mesh">`), strings.Index(page, "<main>")
		if strings.Count(page, `<section class="mesh">`) != 1 || (section < list) != above {
			t.Errorf("%d cases: the mesh is at %d, the cases at %d", cases, section, list)
		}
		if regexp.MustCompile(`id="case-1"[^>]* open>`).MatchString(page) != above {
			t.Errorf("%d cases: the case is open, or not", cases)
		}
	}
}

// TestFailedStepStaysInView: with what led to it, however many steps follow, and the failure leads to it.
func TestFailedStepStaysInView(t *testing.T) {
	const before, after = 500, 3000
	records := []record.Record{started("soak")}
	for i := range before + 1 + after {
		records = append(records, record.Record{Kind: record.StepEnd, Case: "soak", Step: &record.Step{
			Role: "client", Action: "poll", Text: fmt.Sprintf("number %d", i), OK: i != before,
			At: time.Duration(i) * time.Microsecond,
		}})
	}
	page := pageOf(
		t, 1,
		append(
			records,
			finished("soak", record.Failed, record.Failure{
				Action: "poll", What: "no completion", File: "file.yaml", Line: 3,
			}),
		)...,
	)
	for _, want := range []string{
		`<a href="#case-1-failed-1">in the timeline</a>`, `id="case-1-failed-1"`, "poll number 500<",
		"poll number 493<", "poll number 0<", "poll number 3500<",
		"453 more steps", "2960 more steps",
	} {
		if strings.Count(page, want) != 1 {
			t.Errorf("the page has %d of %q", strings.Count(page, want), want)
		}
	}
	if strings.Contains(page, "poll number 492<") || strings.Contains(page, "poll number 501<") {
		t.Error("steps are shown that are neither near the failure nor at an end")
	}
	if n := strings.Count(page, `<div class="step"`); n != 88 {
		t.Errorf("%d steps are shown", n)
	}
}

// TestThresholdsAreLines: in the chart over sizes and in that of percentiles; a column without anything is left out.
func TestThresholdsAreLines(t *testing.T) {
	page := pageOf(t, 1, started("sweep"),
		record.Record{Kind: record.Measured, Case: "sweep", Measure: measured(t, 64)},
		record.Record{Kind: record.Measured, Case: "sweep", Measure: measured(t, 1<<20)},
		record.Record{Kind: record.Checked, Case: "sweep", Threshold: &record.Threshold{
			Text: "latency p50 < 10us", Metric: "latency", Field: "p50", Value: "9us", OK: true,
			Bounds: []record.Bound{
				{Name: "write latency", Of: "total", Size: 64, Value: 10e3},
				{Name: "write latency", Of: "total", Size: 1 << 20, Value: 10e3},
			},
		}}, finished("sweep", record.Passed))
	if n := strings.Count(page, `<g class="curve limit" data-name="latency p50 &lt; 10us"`); n != 2 {
		t.Errorf("%d lines of the threshold", n)
	}
	if !strings.Contains(page, `<li class="limit">threshold</li>`) {
		t.Error("no legend names the threshold")
	}
	// From 2 us to 67 us: the axis has magnitudes, and no zero.
	chart := page[strings.Index(page, "Latency p50 by message size"):]
	if chart = chart[:strings.Index(chart, "</figure>")]; strings.Contains(chart, ">0</text>") {
		t.Errorf("the axis begins at 0: %s", chart)
	}
	for _, column := range []string{"average", "errors", "of"} {
		if regexp.MustCompile(`<th[^>]*>` + column + `</th>`).MatchString(page) {
			t.Errorf("there is an empty column %s", column)
		}
	}
	for _, column := range []string{"size", "iterations", "p50", "p99.9"} {
		if !strings.Contains(page, `<th class="n">`+column+`</th>`) {
			t.Errorf("there is no column %s", column)
		}
	}
}
