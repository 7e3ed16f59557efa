package output_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	hdr "github.com/HdrHistogram/hdrhistogram-go"

	"rdmarun/host/output"
	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
)

// FuzzReported has an agent report whatever: no output fails of it, and no terminal obeys it.
func FuzzReported(f *testing.F) {
	for _, seed := range []string{
		`{"kind":"step","step":{"role":"client","action":"post_write","text":"ep","outcome":"done","line":7,"column":3,"took_ns":5,"ok":true}}`,
		`{"kind":"step","step":{"role":"\u001b[2J","action":"\u0007\u009b1m","text":"::error::x\r\n\u202e","outcome":"\u001b]0;x\u0007","line":-1,"took_ns":-9223372036854775808}}`,
		`{"kind":"step","time":"9999-12-31T23:59:59Z","step":{"action":"x","took_ns":9223372036854775807,"tags":{"\u001b":"]]>"},"xfail":"<script>","errno":"\u0000"}}`,
		`{"kind":"step","step":{"fields":[{"name":"\u001b","value":"\u001b"}],"packets":[{"from":"\u001b","length":-1}],"more_packets":-5,"clock":{}}}`,
		`{"kind":"output","line":{"role":"client","text":"\u001b[31mred\u001b[0m\n::warning::\u2028"}}`,
		`{"kind":"output","line":{"role":"client","text":"` + "\xff\xfe" + `"}}`,
		`{"kind":"device","device":{"name":"\u001b","provider":"x\"y","driver":"a\nb","rate_gbps":1e308,"mtu":-1,"numa":"\\"}}`,
		`{"kind":"run_end","totals":{"passed":7}}`, `{"kind":"case_end","result":{"status":"passed"}}`,
		`{"kind":"step"}`, `{}`, `[]`, ``, `{"kind":"output","line":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reported, ok := record.ParseReported(data)
		if !ok {
			return
		}
		if reported.Result != nil || reported.Totals != nil || reported.Case != "" {
			t.Fatalf("an agent has a say in how a case ends: %+v", reported)
		}
		reported.Host, reported.Case, reported.File = "a", "lab.yaml", "lab.yaml"
		written(t, reported, &record.Result{Name: "lab.yaml", Status: record.Passed, Took: time.Second, Steps: 1})
	})
}

// FuzzReportedOfCase has another process report anything of a case: what it has measured, how long loops took, and how
// its part has failed.
func FuzzReportedOfCase(f *testing.F) {
	for _, seed := range []string{
		`{"measure":{"name":"\u001b[2J","type":"latency","operation":"\u202e","role":"\u0007","size":-1,"messages":18446744073709551615,"took_ns":-9223372036854775808,"bits_per_second":-1e308,"tags":{"\u001b":"]]>"}}}`,
		`{"measure":{"type":"bandwidth","bytes":18446744073709551615,"intervals":[{"begin_ns":0,"end_ns":0,"bytes":7},{"begin_ns":9223372036854775807,"end_ns":-9223372036854775808}],"latency":[{"of":"\u001b","count":-1,"mean_ns":1e308,"stddev_ns":-1e308,"hdr":"x"}]}}`,
		`{"measure":{},"result":{}}`,
		`{"measure":{"type":"connect","latency":[{},{},{"of":"total","count":1,"p50_ns":9223372036854775807}]}}`,
		`{"result":{"failures":[{"kind":"\u001b","line":-5,"column":9223372036854775807,"role":"\u001b[1m","action":"\n::error::x","what":"\u009b","expected":"]]>","got":"<script>","hint":"\u0000","details":["\u001b"],"path":["\u202e"],"used":["../../\u001b"]}]}}`,
		`{"result":{"reason":"\u001b]0;x\u0007","loops":[{"name":"\u001b","rounds":-1,"min_ns":-9223372036854775808,"tags":{"":"\u0000"}}],"traffic":[{"operation":"\u001b","count":18446744073709551615,"bytes":18446744073709551615}]}}`,
		`{"result":{"failures":[{"timeline":[{"at_ns":-9223372036854775808,"role":"\u001b","text":"\u0007","line":-1},{"at_ns":9223372036854775807,"clock_ns":-1}]}]}}`,
	} {
		f.Add([]byte(seed))
	}
	for _, h := range []*hdr.Histogram{
		hdr.New(1, 60e9, 3), hdr.New(1, math.MaxInt64, 5), hdr.New(1<<40, math.MaxInt64, 1),
	} {
		for range 2 { // an empty one, and one of a time that is none
			text, err := h.Encode(hdr.V2CompressedEncodingCookieBase)
			if err != nil {
				f.Fatal(err)
			}
			one := `{"of":"total","count":7,"hdr":"` + string(text) + `"},`
			f.Add([]byte(
				`{"measure":{"name":"x","type":"latency","size":64,"latency":[` + strings.Repeat(one, 7) +
					one[:len(one)-1] + `]}}`,
			))
			_ = h.RecordValue(math.MaxInt64)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var reported struct {
			Measure *record.Measure `json:"measure"`
			Result  record.Result   `json:"result"`
		}
		if json.Unmarshal(data, &reported) != nil {
			return
		}
		result := &reported.Result
		result.Name, result.Status, result.Took, result.Steps = "lab.yaml", record.Failed, time.Second, 1
		for i := range result.Failures { // as exec takes them
			result.Failures[i].File, result.Failures[i].Excerpt, result.Failures[i].Rerun = "lab.yaml", nil, ""
		}
		measured := &record.Record{Kind: record.Measured, Case: "lab.yaml", File: "lab.yaml", Measure: reported.Measure}
		if reported.Measure == nil {
			measured.Measure = &record.Measure{What: record.What{Type: "latency"}}
		}
		written(t, measured, result)
	})
}

// written makes all outputs write a record of a case, and how it ended.
func written(t *testing.T, said *record.Record, result *record.Result) {
	t.Helper()
	var human bytes.Buffer
	consumers := map[string]record.Consumer{
		"terminal": terminal.NewHuman(&human, terminal.HumanOptions{Steps: true, Places: true}),
	}
	texts := map[string]*bytes.Buffer{"terminal": &human}
	var closing []func() error
	for _, format := range output.Formats() {
		if format.Folder {
			continue
		}
		texts[format.Name] = &bytes.Buffer{}
		out, err := output.Open(output.Target{Format: format.Name, Path: "-"}, texts[format.Name])
		if err != nil {
			t.Fatal(err)
		}
		consumers[format.Name], closing = out, append(closing, out.Close)
	}
	for _, each := range []*record.Record{
		{Kind: record.RunStart, Run: &record.Run{Provider: "soft", Cases: 1}},
		{Kind: record.CaseStart, Case: "lab.yaml", File: "lab.yaml", Start: &record.Start{Name: "lab.yaml"}},
		said,
		{Kind: record.CaseEnd, Case: "lab.yaml", File: "lab.yaml", Result: result},
		{Kind: record.RunEnd, Totals: &record.Totals{}},
	} {
		each.Version = record.Version
		for name, consumer := range consumers {
			if !consumer.Wants(each.Kind) {
				continue
			}
			if err := consumer.Record(each); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for _, closing := range closing {
		if err := closing(); err != nil {
			t.Error(err)
		}
	}
	for name, text := range texts {
		if name == "jsonl" {
			continue // has all as it was said, in JSON's own escapes, for programs
		}
		if i := bytes.IndexAny(text.Bytes(), "\x1b\x07\x00\u009b\u202e"); i >= 0 {
			t.Errorf("%s has what a terminal obeys: %q", name, text.Bytes()[max(0, i-40):min(text.Len(), i+40)])
		}
	}
}
