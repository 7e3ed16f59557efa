package guest_test

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "assemble the guests that are written by hand anew (needs wat2wasm)")

// The modules of guests written by hand stand beside their sources, so that nobody needs an assembler.
func TestHandWrittenGuestsAreAssembled(t *testing.T) {
	assembler, err := exec.LookPath("wat2wasm")
	if err != nil {
		t.Skip("no wat2wasm (Debian: wabt)")
	}
	var sources []string
	for _, pattern := range []string{"testdata/*.wat", "wasm/testdata/*.wat", "../scenario/example/*.wat", "../../guests/*/*.wat"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %v", pattern, found, err)
		}
		sources = append(sources, found...)
	}
	for _, source := range sources {
		module := strings.TrimSuffix(source, ".wat") + ".wasm"
		assembled := filepath.Join(t.TempDir(), "module.wasm")
		// cheat.wat is wrong on purpose.
		out, err := exec.Command(assembler, "--no-check", "--enable-threads", "--enable-tail-call", source, "-o", assembled).CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", source, err, out)
			continue
		}
		want, err := os.ReadFile(assembled)
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(module, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(module); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what %s makes (%v): go test ./host -run HandWritten -update", module, source, err)
		}
	}
}
