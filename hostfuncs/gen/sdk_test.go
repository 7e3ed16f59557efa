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
	compileRust(t, "/usr/bin/rustc", "--edition", "2021", "--target", toolchain.RustTarget())
}

// In edition 2024 as well, where this machine has a compiler that knows it; which target it has does not matter.
func TestRustCompilesInEdition2024(t *testing.T) {
	for _, compiler := range []string{"rustc", "/usr/bin/rustc"} {
		if exec.Command(compiler, "--edition", "2024", "--print", "sysroot").Run() == nil {
			compileRust(t, compiler, "--edition", "2024", "--emit", "metadata")
			return
		}
	}
	t.Skip("no rustc knows edition 2024; that of Debian 13 does")
}

func compileRust(t *testing.T, compiler string, flags ...string) {
	t.Helper()
	flags = append(flags, "--crate-type", "rlib", "-D", "warnings", "-o", filepath.Join(t.TempDir(), "sdk.rlib"),
		filepath.Join(repository, "sdk/rust/mod.rs"))
	if out, err := exec.Command(compiler, flags...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
