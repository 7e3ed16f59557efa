package output_test

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"rdmarun/host/output"
	"rdmarun/host/output/github"
	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
)

// ofALab feeds an output with a case on twenty hosts, of which three do something; one has another firmware.
func ofALab(t *testing.T, out record.Consumer) {
	t.Helper()
	put := func(r record.Record) {
		r.Version = record.Version
		if r.Kind != record.RunStart && r.Kind != record.RunEnd {
			r.File, r.Case = "lab.yaml", "lab.yaml"
		}
		r.Time = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		if err := out.Record(&r); err != nil {
			t.Fatal(err)
		}
	}
	put(record.Record{
		Kind: record.RunStart, Run: &record.Run{Provider: "verbs", Cases: 1, Files: []string{"lab.yaml"}},
	})
	start, found := &record.Start{Name: "lab"}, meshOfFour()
	for i := range 20 {
		within := time.Duration(i+1) * time.Microsecond
		host := fmt.Sprintf("n%d", i+1)
		start.Roles = append(start.Roles, record.RolePlace{
			Role: fmt.Sprintf("node[%d]", i), Host: host, Device: "mlx5_0", Address: fmt.Sprintf("192.0.2.%d", i+1),
			ClockWithin: &within,
		})
		if i < len(found.Nodes) {
			found.Nodes[i].Host = host
		}
	}
	put(record.Record{Kind: record.CaseStart, Start: start})
	for i := range start.Roles {
		at := start.Roles[(i*7+3)%20] // as they come
		firmware := map[bool]string{true: "28.1", false: "28.2"}[at.Host == "n5"]
		put(record.Record{Kind: record.DeviceUsed, Host: at.Host, Device: &record.Device{
			Name: at.Device, Host: at.Host, Provider: "verbs", Driver: "mlx5", Firmware: firmware, RateGbps: 400,
		}})
	}
	for i, role := range []string{"node[17]", "node[4]", "", "node[17]"} {
		put(record.Record{
			Kind: record.StepEnd,
			Step: &record.Step{Role: role, Action: "fill", At: time.Duration(i) * time.Microsecond, Line: 7, OK: i < 3},
		})
	}
	put(record.Record{Kind: record.Meshed, Mesh: found})
	put(record.Record{Kind: record.CaseEnd,
		Result: &record.Result{Name: "lab", Status: record.Failed, Failures: []record.Failure{
			{
				Kind: "expectation", File: "lab.yaml", Line: 7, Role: "node[17]", Host: "n18", Action: "fill",
				What: "wrong",
			},
		}}})
	put(record.Record{Kind: record.StepEnd, Host: "n2", Step: &record.Step{Role: "node[1]", Action: "late"}})
	put(record.Record{Kind: record.RunEnd, Totals: &record.Totals{Failed: 1}})
}

// TestOutputsOfALab: hosts are named where people look for them, in their order, and what is the same of all is said
// once.
func TestOutputsOfALab(t *testing.T) {
	texts := make(map[string]string)
	for _, format := range []string{"html", "junit", "csv"} {
		var text bytes.Buffer
		out, err := output.Open(output.Target{Format: format, Path: "-"}, &text)
		if err != nil {
			t.Fatal(err)
		}
		ofALab(t, out)
		if err := out.Close(); err != nil {
			t.Fatal(err)
		}
		texts[format] = text.String()
	}
	var human bytes.Buffer
	ofALab(t, terminal.NewHuman(&human, terminal.HumanOptions{}))
	texts["terminal"] = human.String()
	var narrow bytes.Buffer
	ofALab(t, terminal.NewHuman(&narrow, terminal.HumanOptions{Style: terminal.Style{Width: 50}, Width: 50}))
	texts["narrow"] = narrow.String()
	var annotations bytes.Buffer
	ofALab(t, github.New(&annotations))
	texts["github"] = annotations.String()
	for format, wants := range map[string][]string{
		"html": {
			" on 20 hosts", `<p class="lead">1 case in `,
			`<dl class="many"><dt class="head">Roles</dt><div><dt>node[0]</dt><dd>n1 mlx5_0 192.0.2.1</dd></div>`,
			"host n18: ", "each right to ±18.0\u202fus.</p>", `<section class="ladder lanes-3"`,
			"n18 mlx5_0 192.0.2.18<br>times ±18.0\u202fus",
			`<span class="who">node[4] <small>n5</small></span>`,
			`<dt class="head">All devices</dt><dt>provider</dt><dd>verbs</dd>`,
			"<th>host</th><th>device</th><th>firmware</th></tr>",
			"<tr><td>n5</td><td>mlx5_0</td><td>28.1</td></tr>\n<tr><td>n6</td><td>mlx5_0</td><td>28.2</td></tr>",
			`<tr><td data-label="from">n1</td><td data-label="to">n4</td>`,
			"<title>n1 → n4: 30.0\u202fGbit/s, 30\u202f% of the best; at first 31.0\u202fGbit/s; round 1</title>",
			">rack r1<title>rack r1</title></text>", `<li class="suspect">fine on the second look</li>`,
			`<path class="outlier" d="M`, `<path class="lost" d="M`,
		},
		"junit": {`"role.node[17].host" value="n18"`, "lab.yaml:7:0: host n18: node[17] fill: wrong"},
		"csv":   {",lost,the ends cannot connect: nothing within 10s &lt;b&gt;,", ",0.3000,n1,n4,"},
		"terminal": {
			"lab.yaml:7:0: host n18: node[17] fill: wrong", "n4 - n2             lost",
			"1 pair lost: the ends cannot connect: nothing within 10s",
			"n1 - n4      31.0 Gbit/s  30.0 Gbit/s         30 %",
		},
		"narrow": {
			"      worst pairs  second look  of the best\n      n4 - n2             lost\n" +
				"      n1 - n4      30.0 Gbit/s         30 %\n",
		},
		"github": {"::host n18: wrong"},
	} {
		got := strings.NewReplacer("</tr><tr>", "</tr>\n<tr>", "<b>", "&lt;b&gt;").Replace(texts[format])
		for _, want := range wants {
			if !strings.Contains(got, want) {
				t.Errorf("%s: there is no %q in\n%s", format, want, got)
			}
		}
	}
	var hosts []string
	for _, match := range regexp.MustCompile(`name="host\.(n\d+)\.device\.mlx5_0\.firmware"`).FindAllStringSubmatch(
		texts["junit"], -1,
	) {
		hosts = append(hosts, match[1])
	}
	if got := strings.Join(hosts, " "); !strings.HasPrefix(got, "n1 n2 n3 ") ||
		!strings.HasSuffix(got, " n9 n10 n11 n12 n13 n14 n15 n16 n17 n18 n19 n20") {
		t.Errorf("hosts in JUnit are in the order %s", got)
	}
}
