package host_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host"
)

// The guest that README.md shows is one that this host can run.
func TestGuestOfTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := strings.Cut(string(readme), "```go\n")
	program, _, ok := strings.Cut(program, "```")
	if !ok {
		t.Fatal("the readme shows no Go")
	}
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
	if err := host.Check(module); err != nil {
		t.Error(err)
	}
}
