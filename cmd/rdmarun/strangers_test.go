package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinksOfAnotherUser has another user put a link where a command will write a file of each kind. The link leads to
// a file of this user, or to nothing. Nothing is written through it.
func TestLinksOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives a link to another user")
	}
	const stranger = 65533
	scenario := filepath.Join("..", "..", "scenarios", "negotiate.yaml")
	hello := filepath.Join("..", "..", "guests", "hello", "hello.wasm")
	for name, test := range map[string]struct {
		file      string
		arguments []string // with FILE
		replaced  bool     // and not refused
	}{
		"capture": {"capture.pcapng", []string{"run", "--capture", "FILE", scenario}, false},
		"records": {"records.jsonl", []string{"run", "-o", "jsonl=FILE", scenario}, false},
		"log":     {"run.log", []string{"run", "--log-file", "FILE", scenario}, false},
		"trace":   {"trace", []string{"guest", "run", "--trace", "--trace-file", "FILE", hello}, false},
		"pack":    {"suite.rdmarun", []string{"pack", "-O", "FILE", scenario}, false},
		"report":  {"junit.xml", []string{"run", "-o", "junit=FILE", scenario}, true},
	} {
		for _, there := range []bool{true, false} {
			path, target := filepath.Join(t.TempDir(), test.file), filepath.Join(t.TempDir(), "mine")
			if there {
				if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Symlink(target, path), os.Lchown(path, stranger, stranger)); err != nil {
				t.Fatal(err)
			}
			var arguments []string
			for _, each := range test.arguments {
				arguments = append(arguments, strings.Replace(each, "FILE", path, 1))
			}
			program := exec.Command(os.Args[0], arguments...)
			program.Env = append(os.Environ(), runAsRdmarun+"=1")
			said, err := program.CombinedOutput()
			if (err == nil) != test.replaced || !test.replaced && !strings.Contains(string(said), "symbolic link") {
				t.Errorf("%s: %v\n%s", name, err, said)
			}
			got, err := os.ReadFile(target)
			if there && string(got) != "mine" || !there && !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s: the target is %q, %v", name, got, err)
			}
		}
	}
}
