package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rdmarun/host/guest"
	"rdmarun/host/output/terminal"
	"rdmarun/host/record"
	"rdmarun/host/scenario"
	"rdmarun/host/scenario/diag"
	"rdmarun/sdk"
)

// The guest that README.md shows, with the scenario around it, does what is shown there.
func TestGuestOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program := block(t, string(readme), "```go\n")
	_, after, _ := strings.Cut(string(readme), program)
	lab := block(t, after, "```yaml\n")
	_, shown, _ := strings.Cut(block(t, after, "```\n$ make"), "rdmarun run looker/looker.yaml\n")
	t.Chdir(t.TempDir())
	module := filepath.Join("looker", "looker.wasm")
	if err := sdk.Write("go", filepath.Join("looker", "rdma")); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{
		"main.go": program, "looker.yaml": lab,
		"go.mod": "module example/looker\n\nrequire " + sdk.GoModule + " v0.0.0\n\nreplace " + sdk.GoModule + " => ./rdma\n\ngo 1.25.0\n",
	} {
		if err := os.WriteFile(filepath.Join("looker", file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	// Without paths in it the module is the same wherever it is built, and compiled but once.
	command := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-o", "looker.wasm", ".")
	command.Dir = "looker"
	command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOPROXY=off", "GOFLAGS=")
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	// Compiled beforehand: with the race detector that can take longer than the guest may run.
	if _, err := newRuntime(t, guest.InterruptMetered).Compile(testContext(t), module); err != nil {
		t.Fatal(err)
	}
	checked := scenario.Check([]string{"looker/looker.yaml"}, scenario.Params{})
	var text strings.Builder
	if checked.Errors.Len()+checked.Errors.Warnings() > 0 {
		t.Fatal(checked.Errors.Render(&text, diag.Painter{}), &text)
	}
	if _, err := scenario.Run(t.Context(), checked.Scenarios, scenario.RunConfig{
		Open: scenario.OpenSoft, ProviderName: "soft", GuestCache: cacheDir,
		Consumers: []record.Consumer{terminal.NewHuman(&text, terminal.HumanOptions{})},
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
