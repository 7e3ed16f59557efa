// Package toolchain finds the compilers of guests that this machine has, for tests.  Where continuous integration runs
// all of them must be there ($CI).
package toolchain

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// compiler is that of AssemblyScript, seen from a package two folders below the top, as all that ask are.
const compiler = "../../build/tools/assemblyscript/node_modules/.bin/asc"

// Missing says why guests in a language cannot be compiled here; "" when they can.
func Missing(language string) string {
	for _, program := range programs(language) {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Sprintf("%v; tools/setup.sh test installs it", err)
		}
	}
	if language == "assemblyscript" {
		if _, err := os.Stat(compiler); err != nil {
			return "the compiler of AssemblyScript was not fetched; make languages does"
		}
	}
	if language == "rust" {
		if RustTarget() == "" {
			return "the distribution's rustc has no library for WebAssembly; tools/setup.sh test installs it"
		}
	}
	if language == "cpp" {
		if _, err := os.Stat("/usr/lib/wasm32-wasi/libc++.a"); err != nil {
			return "there is no library of C++ for WebAssembly; tools/setup.sh test installs it"
		}
	}
	return ""
}

// RustTarget is what the distribution's rustc calls WebAssembly with WASI, "" where it has no library for it.
func RustTarget() string {
	found, _ := filepath.Glob("/usr/lib/rustlib/wasm32-wasi*") // the pattern is a good one
	if len(found) == 0 {
		return ""
	}
	return filepath.Base(found[0])
}

func programs(language string) []string {
	switch language {
	case "c":
		return []string{"clang", "wasm-ld"}
	case "cpp":
		return []string{"clang++", "wasm-ld"}
	case "rust":
		// The distribution's, whatever else is on PATH: others rarely have a library for WebAssembly.
		return []string{"/usr/bin/rustc", "wasm-ld"}
	case "assemblyscript":
		return []string{"node"}
	}
	return []string{"go"}
}

// Need skips a test that compiles a guest where that cannot be done, with the reason.
func Need(t testing.TB, language string) {
	t.Helper()
	if why := Missing(language); why != "" {
		Lacks(t, why)
	}
}

// Lacks ends a test for what this machine has not: skipped with the reason, but failed in continuous integration.
func Lacks(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Have is Need for one line of a script: whether there is a compiler, an error where there has to be.
func Have(language string) (bool, error) {
	why := Missing(language)
	if why != "" && os.Getenv("CI") != "" {
		return false, fmt.Errorf("%s", why)
	}
	return why == "", nil
}
