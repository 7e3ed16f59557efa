package host_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rdmarun/host"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/record"
	"rdmarun/host/scenario/report"
)

// The guest that README.md shows, with the scenario around it, does what is shown there.
func TestGuestOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program := block(t, string(readme), "```go\n")
	_, after, _ := strings.Cut(string(readme), program)
	lab := block(t, after, "```yaml\n")
	_, shown, _ := strings.Cut(block(t, after, "```\n$ GOOS"), "rdmarun run looker.yaml\n")
	// An overlay puts it into this module without writing there.
	dir := t.TempDir()
	source, overlay, module := filepath.Join(dir, "main.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "looker.wasm")
	inModule, err := filepath.Abs("../guests/looker/main.go")
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {inModule: source}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{source: program, overlay: string(replace)} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	command := exec.Command("go", "build", "-overlay", overlay, "-o", module, "rdmarun/guests/looker")
	command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Compiled beforehand: with the race detector that can take longer than the guest may run.
	if _, err := newRuntime(t, host.InterruptMetered).Compile(testContext(t), module); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	if err := os.WriteFile("looker.yaml", []byte(lab), 0o644); err != nil {
		t.Fatal(err)
	}
	checked := scenario.Check([]string{"looker.yaml"}, scenario.Params{})
	var text strings.Builder
	if checked.Errors.Len()+checked.Errors.Warnings() > 0 {
		t.Fatal(checked.Errors.Render(&text, diag.Painter{}), &text)
	}
	if _, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", GuestCache: cacheDir,
		Consumers: []record.Consumer{report.NewHuman(&text, report.HumanOptions{})},
	}); err != nil {
		t.Fatal(err)
	}
	if got, want := lasting(text.String()), lasting(shown); got != want {
		t.Errorf("it prints\n%s\nand the readme shows\n%s", text.String(), shown)
	}
}

// block is what stands between a fence and the next.
func block(t *testing.T, text, fence string) string {
	t.Helper()
	_, rest, _ := strings.Cut(text, fence)
	inside, _, ok := strings.Cut(rest, "```")
	if !ok {
		t.Fatalf("the readme has no %q", fence)
	}
	return inside
}

// lasting leaves out what differs from run to run: the seed, ports, times and how much room they take.
func lasting(text string) string {
	for _, each := range []struct{ pattern, by string }{
		{`, seed \d+`, ""}, {`:\d{4,5} says`, ":PORT says"}, {` +[\d.]+ (us|ms|s)\b`, " TIME"},
	} {
		text = regexp.MustCompile(each.pattern).ReplaceAllString(text, each.by)
	}
	return strings.TrimSpace(text)
}
