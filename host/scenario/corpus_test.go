package scenario_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/internal/corpus"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestBadFiles compares the output of validate for every file in the archives of testdata/bad with the text there.
func TestBadFiles(t *testing.T) {
	checkCorpus(t, "testdata/bad", 400, func(t *testing.T, checked *scenario.Checked) {
		if checked.Errors.Len() == 0 {
			t.Error("a bad file passes")
		}
	})
}

// TestWarnings does the same with files that may run.
func TestWarnings(t *testing.T) {
	checkCorpus(t, "testdata/warn", 5, func(t *testing.T, checked *scenario.Checked) {
		if checked.Errors.Len() > 0 || checked.Errors.Warnings() == 0 {
			t.Errorf("%d errors, %d warnings", checked.Errors.Len(), checked.Errors.Warnings())
		}
	})
}

func checkCorpus(t *testing.T, folder string, least int, look func(t *testing.T, checked *scenario.Checked)) {
	files := corpus.Open(t, folder)
	if len(files.Cases) < least {
		t.Fatalf("%d files", len(files.Cases))
	}
	for _, each := range files.Cases {
		t.Run(each.Name, func(t *testing.T) {
			checked, err := scenario.CheckIn(t.Context(), files.Locate, []string{each.Path}, scenario.Params{})
			if err != nil {
				t.Fatal(err)
			}
			look(t, checked)
			var text strings.Builder
			if err := checked.Errors.Render(&text, diag.Painter{}); err != nil {
				t.Fatal(err)
			}
			if *update {
				files.Update(each, text.String())
				return
			}
			compareLines(t, each.Golden, text.String(), each.Want)
		})
	}
	if err := files.Save(); err != nil {
		t.Fatal(err)
	}
}

// TestLookedAt: a count of retries that becomes another is no mistake where a step looks at what it has become.
func TestLookedAt(t *testing.T) {
	const begin = `rdmarun: v1
roles: {server: {}, client: {buffers: {tx: {size: 64}}}}
steps:
  - {role: server, create_ep: {passive: true, port: 7000}, as: listener}
  - {role: server, listen: {ep: listener}}
  - {role: client, create_ep: {to: server, port: 7000}, as: ep}
  - {role: client, connect: {ep: ep, retry_count: 8, rnr_retry_count: 9}}
  - {role: server, get_request: {ep: listener}, as: ep}
  - {role: server, accept: {ep: ep, retry_count: 3}}
`
	for looks, want := range map[string]int{
		// both counts are large, accept ignores one, and the server sends nothing
		"":                                   4,
		"{role: client, query_qp: {ep: ep}}": 4,
		"{role: client, query_qp: {ep: ep}, expect: {retry_cnt: 7}}":               2,
		"{role: client, query_qp: {ep: ep}, expect: {rnr_retry: 7}}":               2,
		"{role: client, query_qp: {ep: ep}, expect: {retry_cnt: 7, rnr_retry: 7}}": 0,
	} {
		text := begin
		if looks != "" {
			text += "  - " + looks + "\n"
		}
		path := filepath.Join(t.TempDir(), "looks.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if checked := scenario.Check([]string{path}, scenario.Params{}); checked.Errors.Len() > 0 ||
			checked.Errors.Warnings() != want {
			t.Errorf(
				"%q: %d warnings, expected %d: %v", looks, checked.Errors.Warnings(), want, checked.Errors.Sorted(),
			)
		}
	}
}

// TestOwnScenariosWarnOfNothing: the scenarios from which users start have no errors and no warnings.
func TestOwnScenariosWarnOfNothing(t *testing.T) {
	checked := scenario.Check([]string{"../../scenarios"}, scenario.Params{})
	if len(checked.Scenarios) < 40 {
		t.Fatalf("%d scenarios", len(checked.Scenarios))
	}
	for _, warning := range checked.Errors.Sorted() {
		t.Error(warning)
	}
}

// TestNoFalseWarnings: a limit below rdma_cm's RNR timer is right where a send fails at once, or the timer is another.
func TestNoFalseWarnings(t *testing.T) {
	const lab = `rdmarun: v1
imports: {cm: std/cm}
roles:
  server: {buffers: {rx: {size: 64, access: [LOCAL_WRITE]}}}
  client: {buffers: {tx: {size: 64, access: [LOCAL_WRITE]}}}
steps:
  - {use: cm.pair, with: {client: client, server: server, STEP}}
  - {MODIFY}
  - {role: client, post_send: {ep: ep, buffer: tx}}
  - {role: client, poll: {cq: send}, expect: {status: RNR_RETRY_EXC_ERR}, took: {max: 500ms}}
`
	for name, test := range map[string]struct {
		with, modify string
		warnings     int
	}{
		"neither":                {"connect: {}", "log: nothing", 1},
		"a count of its own":     {"accept: {rnr_retry_count: 3}", "log: nothing", 1},
		"accept without retries": {"accept: {rnr_retry_count: 0}", "log: nothing", 0},
		"another timer":          {"connect: {}", "role: server, modify_qp: {ep: ep, min_rnr_timer: 1}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			text := strings.NewReplacer("STEP", test.with, "MODIFY", test.modify).Replace(lab)
			if err := os.WriteFile(folder+"/lab.yaml", []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			checked := scenario.Check([]string{folder + "/lab.yaml"}, scenario.Params{})
			if checked.Errors.Len() > 0 || checked.Errors.Warnings() != test.warnings {
				var shown strings.Builder
				_ = checked.Errors.Render(&shown, diag.Painter{})
				t.Errorf("%d warnings, want %d\n%s", checked.Errors.Warnings(), test.warnings, &shown)
			}
		})
	}
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	compareLines(t, path, got, string(want))
}

// compareLines shows the first line that differs.
func compareLines(t *testing.T, path, got, want string) {
	t.Helper()
	gotLines, wantLines := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range max(len(gotLines), len(wantLines)) {
		var g, w string
		if i < len(gotLines) {
			g = gotLines[i]
		}
		if i < len(wantLines) {
			w = wantLines[i]
		}
		if g != w {
			t.Errorf("%s:%d\n got: %q\nwant: %q", path, i+1, g, w)
			return
		}
	}
}

// TestExamples runs the scenarios that come with rdmarun on soft, each case with the clock of its file.
func TestExamples(t *testing.T) {
	for file, cases := range map[string]int{
		"rping.yaml": 1, "negotiate.yaml": 9, "faults.yaml": 7, "sweep.yaml": 1, "connections.yaml": 1, "mesh.yaml": 1,
		"guest-faults.yaml": 2, "guest-crowd.yaml": 2,
	} {
		t.Run(file, func(t *testing.T) {
			var text strings.Builder
			human := terminal.NewHuman(&text, terminal.HumanOptions{})
			path := filepath.Join("../../scenarios", file)
			totals, err := scenario.Run(t.Context(), load(t, nil, path), scenario.RunConfig{
				Open: scenario.OpenSoft, ProviderName: "soft", Consumers: []record.Consumer{human},
			})
			if err != nil || totals.Passed != cases || totals.Failed+totals.Errors+totals.Skipped > 0 {
				t.Errorf("%v %+v\n%s", err, totals, &text)
			}
		})
	}
}
