package output_test

import (
	"bytes"
	"testing"
	"time"

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
		`{"kind":"run_end","totals":{"passed":7}}`, `{"kind":"case_end","result":{"status":"passed"}}`, `{"kind":"step"}`, `{}`, `[]`, ``, `{"kind":"output","line":{}}`,
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
		var human bytes.Buffer
		consumers := map[string]record.Consumer{"terminal": terminal.NewHuman(&human, terminal.HumanOptions{Steps: true, Places: true})}
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
		end := &record.Result{Name: "lab.yaml", Status: record.Passed, Took: time.Second, Steps: 1}
		for _, each := range []*record.Record{
			{Kind: record.RunStart, Run: &record.Run{Provider: "soft", Cases: 1}},
			{Kind: record.CaseStart, Case: "lab.yaml", File: "lab.yaml", Start: &record.Start{Name: "lab.yaml"}},
			reported,
			{Kind: record.CaseEnd, Case: "lab.yaml", File: "lab.yaml", Result: end},
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
	})
}
