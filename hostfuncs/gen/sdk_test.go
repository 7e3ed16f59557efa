package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"rdmarun/internal/toolchain"
)

// The module is compiled without a warning; its asserts compare sizes with what the compiler makes of the structs.
func TestRustCompiles(t *testing.T) {
	toolchain.Need(t, "rust")
	targets, err := filepath.Glob("/usr/lib/rustlib/wasm32-wasi*")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("/usr/bin/rustc", "--edition", "2021", "--target", filepath.Base(targets[0]), "--crate-type", "rlib",
		"-D", "warnings", "-o", filepath.Join(t.TempDir(), "sdk.rlib"), filepath.Join(repository, "sdk/rust/mod.rs")).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
