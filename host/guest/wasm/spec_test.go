package wasm

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// specTests is the folder of the tests of the specification and of proposals, as wazero has them.
func specTests(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Fatalf("find wazero's tests: %v", err)
	}
	return filepath.Join(strings.TrimSpace(string(out)), "internal/integration_test/spectest")
}

// notForGuests are modules of the tests that are valid, by what they have that guests cannot have.
var notForGuests = map[string]string{
	"v2/binary-leb128.81.wasm": "is written with more bytes than it needs", // which wazero reads in another way
}

// The decoder accepts what the specification's tests say is valid, and refuses what they say is not.  What it accepts
// is valid for wazero, too, after it was rewritten.
func TestSpecification(t *testing.T) {
	accepted, refused := 0, 0
	for _, folder := range []string{"v2", "tail-call", "extended-const", "threads"} {
		files, err := filepath.Glob(filepath.Join(specTests(t), folder, "testdata", "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var script struct {
				Commands []struct {
					Type       string `json:"type"`
					Line       int    `json:"line"`
					Filename   string `json:"filename"`
					ModuleType string `json:"module_type"`
					Text       string `json:"text"`
				} `json:"commands"`
			}
			if err := json.Unmarshal(content, &script); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, command := range script.Commands {
				if !strings.HasSuffix(command.Filename, ".wasm") {
					continue
				}
				name := folder + "/" + command.Filename
				module := read(t, filepath.Join(filepath.Dir(file), command.Filename))
				decoded, err := Decode(module)
				if err == nil {
					err = decoded.Validate()
				}
				switch command.Type {
				case "assert_invalid", "assert_malformed":
					if refused++; err == nil {
						t.Errorf(
							"%s (line %d) is accepted, where it should be refused: %s", name, command.Line,
							command.Text,
						)
					}
				default:
					accepted++
					if reason, known := notForGuests[name]; known != (err != nil) ||
						known && !strings.Contains(err.Error(), reason) {
						t.Errorf("%s (line %d, %s): %v", name, command.Line, command.Type, err)
					}
					if err == nil && decoded.importedTables == 0 {
						rewrittenIsValid(t, name, decoded)
					}
				}
			}
		}
	}
	if accepted < 1000 || refused < 1000 {
		t.Errorf("only %d modules should be accepted, and %d refused", accepted, refused)
	}
}

func rewrittenIsValid(t *testing.T, name string, decoded *Module) {
	t.Helper()
	for how, rewrite := range map[string]func(context.Context) (Rewritten, error){
		"metered": decoded.Meter, "bounded": decoded.Bound,
	} {
		rewritten, err := rewrite(context.Background())
		if err != nil {
			t.Errorf("%s, %s: %v", name, how, err)
			continue
		}
		again, err := decodeUnreserved(rewritten.Module)
		if err == nil {
			err = again.Validate()
		}
		if err == nil {
			err = valid(t, rewritten.Module)
		}
		if err != nil {
			t.Errorf("%s, %s: %v", name, how, err)
		}
	}
}
