package html

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"rdmarun/host/output/cases"
	"rdmarun/host/record"
)

// TestFailedStepInView renders long timelines: the steps long before the first failed one are folded, and no other.
func TestFailedStepInView(t *testing.T) {
	for name, test := range map[string]struct {
		steps, failed int // -1: none
		folded        string
	}{
		"late":      {60, 50, "<summary>42 earlier steps</summary>"},
		"early":     {60, 10, ""},
		"no failed": {60, -1, ""},
		"short":     {15, 14, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := cases.Case{Result: record.Result{Name: name, Status: record.Failed}}
			timeline := &timeline{Lanes: []lane{{Name: "client"}}}
			for i := range test.steps {
				row := ladderRow{Lane: 1, Text: "step"}
				if i == test.failed {
					row.Bad, row.ID = true, "failed"
				}
				timeline.Rows = append(timeline.Rows, row)
			}
			timeline.fold()
			var page strings.Builder
			view := &caseView{Case: &c, Detailed: true, Timeline: timeline}
			if err := parse().ExecuteTemplate(&page, "case", view); err != nil {
				t.Fatal(err)
			}
			text := page.String()
			if test.folded == "" && strings.Contains(text, "earlier") || !strings.Contains(text, test.folded) {
				t.Errorf("not %q in\n%s", test.folded, text)
			}
			if rows := strings.Count(text, "<li "); rows != test.steps {
				t.Errorf("%d rows of %d", rows, test.steps)
			}
			folded := strings.Index(text, "</details><ol>")
			if test.folded != "" && strings.Index(text, `id="failed"`) < folded {
				t.Error("the failed step is folded")
			}
		})
	}
}

// TestPrintedLines puts what roles print between the steps by its time, whatever the order of the records.
func TestPrintedLines(t *testing.T) {
	step := func(role, action string, at time.Duration) *record.Record {
		return &record.Record{
			Kind: record.StepEnd, Case: "c", Elapsed: time.Hour,
			Step: &record.Step{Role: role, Action: action, At: at, Took: time.Microsecond, OK: true},
		}
	}
	line := func(role, text string, at time.Duration) *record.Record {
		return &record.Record{
			Kind: record.Output, Case: "c", Elapsed: time.Hour, Line: &record.Line{Role: role, Text: text, At: at},
		}
	}
	tracker := cases.NewTracker(limits)
	var ended *cases.Case
	for _, each := range []*record.Record{
		{Kind: record.CaseStart, Case: "c", Start: &record.Start{Roles: []record.RolePlace{{Role: "a"}, {Role: "b"}}}},
		step("a", "first", 1*time.Millisecond),
		step("b", "second", 3*time.Millisecond),
		line("a", "late", 4*time.Millisecond),
		line("a", "early", 2*time.Millisecond),
		line("a", "with  blanks", 2*time.Millisecond),
		line("b", "of another role", 2*time.Millisecond),
		line("", "of the runner", 2*time.Millisecond),
		{Kind: record.CaseEnd, Case: "c", Result: &record.Result{Name: "c", Status: record.Passed}},
	} {
		ended = tracker.Record(each)
	}
	timeline, rest := newTimeline(ended)
	var rows []string
	for _, row := range timeline.Rows {
		rows = append(rows, fmt.Sprintf("%d %s%s", row.Lane, row.Text, strings.Join(row.Lines, "|")))
	}
	want := []string{"1 first", "1 early|with  blanks", "2 of another role", "2 second", "1 late"}
	if !slices.Equal(rows, want) {
		t.Errorf("rows %q, want %q", rows, want)
	}
	if len(rest.Rest) != 1 || rest.Rest[0].Text != "of the runner" {
		t.Errorf("below the timeline: %v", rest.Rest)
	}
}
