package output_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/output"
	"rdmarun/host/record"
)

// TestCaptureOfAFailureIsNamed: each output leads to the file of the packets, as its readers look for it.
func TestCaptureOfAFailureIsNamed(t *testing.T) {
	folder := t.TempDir()
	capture := filepath.Join(folder, "captures", "a b.pcapng")
	for format, want := range map[string][]string{
		"html":  {`<a href="../captures/a%20b.pcapng">` + capture + `</a>`},
		"junit": {`<property name="capture" value="` + capture + `"></property>`, "[[ATTACHMENT|" + capture + "]]"},
		"tap":   {`capture: "` + capture + `"`},
		"jsonl": {`"capture":"` + capture + `"`},
	} {
		path := filepath.Join(folder, "reports", "report."+format)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		out, err := output.Open(output.Target{Format: format, Path: path}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range []record.Record{
			{Version: record.Version, Kind: record.RunStart, Run: &record.Run{Cases: 1}},
			{
				Version: record.Version, Kind: record.CaseStart, File: "a b.yaml", Case: "a b",
				Start: &record.Start{Name: "a b"},
			},
			{Version: record.Version, Kind: record.CaseEnd, File: "a b.yaml", Case: "a b", Result: &record.Result{
				Name: "a b", Status: record.Failed, Capture: capture, Failures: []record.Failure{{What: "wrong"}},
			}},
			{Version: record.Version, Kind: record.RunEnd, Totals: &record.Totals{Failed: 1}},
		} {
			if err := out.Record(&each); err != nil {
				t.Fatal(err)
			}
		}
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, each := range want {
			if !strings.Contains(string(text), each) {
				t.Errorf("%s lacks %s:\n%s", format, each, text)
			}
		}
	}
}
