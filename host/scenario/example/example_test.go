package example_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"rdmarun/host/guest"
	"rdmarun/host/output/terminal"
	"rdmarun/host/program"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/example"
)

// TestExamplesRun runs what `rdmarun explain` prints: the head of a file with one of its cases.
func TestExamplesRun(t *testing.T) {
	module, noGuest := os.ReadFile("../../../guests/echo.wasm")
	engine, err := filepath.Abs("../../../bin/javascript.wasm")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(guest.EngineVariable, engine)
	_, noEngine := os.Stat(engine)
	all := example.All()
	if len(all) < 50 {
		t.Fatalf("only %d examples", len(all))
	}
	for _, each := range all {
		t.Run(each.File+"/"+each.Title, func(t *testing.T) {
			folder := t.TempDir()
			if noGuest == nil {
				write(t, folder, "echo.wasm", string(module))
			}
			for name, text := range each.Files {
				write(t, folder, name, text)
			}
			totals, text := run(t, write(t, folder, "example.yaml", each.Text))
			ran := totals.Passed + totals.XFailed
			if noGuest != nil && each.File == "guest" || missing(each.File) ||
				noEngine != nil && (slices.Contains([]string{"script", "input", "allow", "clock"}, each.File)) {
				ran += totals.Skipped
			}
			if total := totals.Passed + totals.XFailed + totals.Skipped + totals.Failed + totals.Errors; ran == 0 &&
				each.File != "library" || ran != total {
				t.Errorf("%+v\n%s", totals, text)
			}
		})
	}
}

// missing reports whether the programs of an example may be missing: those of other packages, and soft as a library,
// which "make build" makes.
func missing(file string) bool {
	if file != "programs" {
		return false
	}
	for _, name := range []string{"rdma_server", "rping", "ib_send_bw", "ucx_perftest"} {
		if _, err := exec.LookPath(name); err != nil {
			return true
		}
	}
	_, err := os.Stat("../../../bin/" + program.Library)
	return err != nil
}

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == program.SupervisorArgument {
		syscall.Exit(program.SupervisorMain())
	}
	os.Exit(m.Run())
}

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// run checks a file and runs it on soft.
func run(t *testing.T, path string) (record.Totals, string) {
	t.Helper()
	checked := scenario.Check([]string{path}, scenario.Params{})
	var text strings.Builder
	if checked.Errors.Len()+checked.Errors.Warnings() > 0 {
		if err := checked.Errors.Render(&text, diag.Painter{}); err != nil {
			t.Fatal(err)
		}
		t.Fatal(&text)
	}
	totals, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", SoftLibrary: "../../../bin/" + program.Library,
		ProgramEnvironment: map[string]string{"PATH": os.Getenv("PATH")},
		Consumers:          []record.Consumer{terminal.NewHuman(&text, terminal.HumanOptions{})},
	})
	if err != nil {
		t.Fatal(err)
	}
	return totals, text.String()
}

// TestNoCaseWithoutWords: a case without a word would never be shown.
func TestNoCaseWithoutWords(t *testing.T) {
	for _, each := range example.All() {
		if each.File != "library" && len(each.Words) == 0 {
			t.Errorf("%s: %s has no words", each.File, each.Title)
		}
		for _, word := range each.Words {
			if found := example.Find(word); found == nil {
				t.Errorf("%s is not found", word)
			}
		}
	}
}

var codeForm = regexp.MustCompile(`(?m): (?:error|warning)\[([EW]\d+)\]`)

// TestCodes wants of each code's wrong scenario that code and no other, and nothing of the right one.  So a code that
// nothing raises cannot stay in the table.
func TestCodes(t *testing.T) {
	codes := example.Codes()
	for code := range diag.Titles() {
		if !slices.Contains(codes, code) {
			t.Errorf("%s has no example", code)
		}
	}
	for _, code := range codes {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			wrong, right := example.OfCode(code)
			if got := found(t, wrong); !slices.Equal(got, []string{code}) {
				t.Errorf("the wrong one has %v\n%.4000s", got, wrong[example.Checked])
			}
			if got := found(t, right); len(got) > 0 {
				t.Errorf("the right one has %v\n%s", got, right[example.Checked])
			}
		})
	}
}

// found lists the codes that the check of a scenario, with its other files, reports.
func found(t *testing.T, texts map[string]string) []string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range texts {
		write(t, folder, name, text)
	}
	checked := scenario.Check([]string{filepath.Join(folder, example.Checked)}, scenario.Params{})
	var shown strings.Builder
	if err := checked.Errors.Render(&shown, diag.Painter{}); err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, match := range codeForm.FindAllStringSubmatch(shown.String(), -1) {
		codes = append(codes, match[1])
	}
	return codes
}
