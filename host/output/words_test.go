package output_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"rdmarun/host/output"
	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
)

// knownFailures is a run of a named file that xfailed.  It has a step that xfailed, and two sizes of a measurement, the
// larger first.
func knownFailures() []record.Record {
	list := []record.Record{
		{Kind: record.RunStart, Run: &record.Run{Provider: "soft", Cases: 1}},
		{Kind: record.CaseStart, Start: &record.Start{Name: "My Case"}},
	}
	for _, size := range []int64{256 << 10, 64} {
		list = append(list, record.Record{Kind: record.Measured, Measure: &record.Measure{
			What: record.What{Name: "bw", Type: "bandwidth", Operation: "SEND"}, Role: "client",
			How: record.How{Size: size}, Messages: 7, Took: time.Second, BitsPerSecond: 5e9, MessagesPerSecond: 7,
			Intervals: []record.Interval{
				{End: time.Second, Bytes: 1e9}, {Begin: time.Second, End: 2 * time.Second, Bytes: 25e7},
			},
		}})
	}
	return append(list,
		record.Record{Kind: record.CaseEnd, Result: &record.Result{
			Name: "My Case", Status: record.XFailed, Reason: "ticket 1",
			Failures: []record.Failure{{Kind: "expectation", File: "n.yaml", What: "does not hold"}},
			Tallies: record.Tallies{
				Known: []record.KnownStep{{Line: 2, Action: "assert", What: "wrong", Reason: "ticket 2", Count: 1}},
			},
		}},
		record.Record{Kind: record.RunEnd, Totals: &record.Totals{XFailed: 1, KnownSteps: 1}},
	)
}

// TestWordsOfAllOutputs: all outputs have the name of a case, the reason of a known failure, and sizes in one form and
// order.
func TestWordsOfAllOutputs(t *testing.T) {
	write := func(out record.Consumer) {
		for _, r := range knownFailures() {
			if r.Version = record.Version; r.Run == nil && r.Totals == nil {
				r.File, r.Case = "n.yaml", "n.yaml"
			}
			if err := out.Record(&r); err != nil {
				t.Fatal(err)
			}
		}
	}
	for format, wants := range map[string][]string{
		"html": {
			" · 1 step xfailed</p>", "does not hold (ticket 1)", "<th class=\"n\">least</th>", "2.00 Gbit/s</td>",
			"8.00 Gbit/s</td>", ">64B</td>", ">256KiB</td>", "My Case",
		},
		"junit": {`name="n.yaml (My Case)"`, `message="xfailed: does not hold (ticket 1)"`, "ticket 2"},
		"tap":   {"not ok 1 - n.yaml (My Case) # TODO ticket 1", "does not hold (ticket 1)", "ticket 2"},
		"csv":   {"xfailed,does not hold (ticket 1),", ",My Case,", ",64,", ",262144,", "xfail,"},
		"prom":  {`rdmarun_case_ok{case="n.yaml",file="n.yaml",name="My Case"} 1.0`},
	} {
		var text bytes.Buffer
		out, err := output.Open(output.Target{Format: format, Path: "-"}, &text)
		if err != nil {
			t.Fatal(err)
		}
		write(out)
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		inOrder(t, format, text.String(), wants, map[string][2]string{
			"html": {">64B</td>", ">256KiB</td>"}, "csv": {",64,", ",262144,"},
		}[format])
	}
	var human bytes.Buffer
	write(terminal.NewHuman(&human, terminal.HumanOptions{}))
	inOrder(t, "terminal", human.String(), []string{
		"My Case  n.yaml", "ticket 1", "ticket 2", "1 xfailed, 1 step xfailed",
	}, [2]string{" 64B ", " 256KiB "})
}

// inOrder checks that a text has all of the wants, and the first of a pair before the second.
func inOrder(t *testing.T, format, text string, wants []string, pair [2]string) {
	text = strings.ReplaceAll(text, "\u202f", " ")
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s: there is no %q in\n%s", format, want, text)
		}
	}
	if strings.Index(text, pair[0]) > strings.Index(text, pair[1]) {
		t.Errorf("%s: %q comes after %q in\n%s", format, pair[0], pair[1], text)
	}
}
