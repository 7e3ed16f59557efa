package guest_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/guest"
	"rdmarun/internal/toolchain"
)

// The guests of testdata/kits use of their language's SDK what guests/languages does not, and print a line at their
// end.
func TestKits(t *testing.T) {
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	const sources = "host/guest/testdata/kits/"
	for name, c := range map[string]struct{ language, compile string }{
		"classes of AssemblyScript": {"assemblyscript", "build/tools/assemblyscript/node_modules/.bin/asc " + sources +
			"objects.ts -O2 --runtime incremental --use abort=sdk/assemblyscript/wasi/abort"},
		"helpers in C": {"c", "clang --target=wasm32-wasi -std=c11 -g -mbulk-memory -Wall -Wextra -Werror -Isdk/c " +
			"-Wl,--stack-first " +
			sources + "helpers.c"},
		"events and polls in Rust": {"rust", "/usr/bin/rustc --edition 2021 --target " + toolchain.RustTarget() +
			" --crate-name guest -C panic=abort -C linker=wasm-ld -D warnings " + sources + "poll.rs"},
		"objects in Rust": {"rust", "/usr/bin/rustc --edition 2021 --target " + toolchain.RustTarget() +
			" --crate-name guest -C panic=abort -C linker=wasm-ld -D warnings " + sources + "objects.rs"},
	} {
		t.Run(name, func(t *testing.T) {
			toolchain.Need(t, c.language)
			module := filepath.Join(t.TempDir(), "guest.wasm")
			words := append(strings.Fields(c.compile), "-o", module)
			command := exec.Command(words[0], words[1:]...)
			command.Dir = "../.."
			if out, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			m, err := r.Compile(testContext(t), module)
			if err != nil {
				t.Fatal(err)
			}
			var out output
			result := r.Run(testContext(t), m, guest.Config{Provider: p, Stdout: &out, Stderr: &out})
			if !result.OK() || out.String() != "all of them\n" {
				t.Errorf("%v\n%s", result.Err, &out)
			}
		})
	}
}
