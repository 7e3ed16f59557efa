package guest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"rdmarun/host/guest"
)

// The generated header makes a guest in C.
func TestCGuest(t *testing.T) {
	for _, tool := range []string{"clang", "wasm-ld"} {
		if _, err := exec.LookPath(tool); err != nil && os.Getenv("CI") != "" {
			t.Fatal(err, "; tools/setup.sh test installs it")
		} else if err != nil {
			t.Skip(err, "; tools/setup.sh test installs it")
		}
	}
	module := filepath.Join(t.TempDir(), "hello.wasm")
	out, err := exec.Command("clang", "--target=wasm32", "-std=c11", "-O2", "-mbulk-memory", "-Wall", "-Wextra", "-Werror", "-nostdlib",
		"-I../../sdk/c", "-Wl,--no-entry", "../../guests/hello_c/hello.c", "-o", module).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r, p := newRuntime(t, guest.InterruptMetered), newProvider(t)
	m, err := r.Compile(testContext(t), module)
	if err != nil {
		t.Fatal(err)
	}
	var printed output
	result := r.Run(testContext(t), m, guest.Config{Provider: p, Stdout: &printed, Stderr: &printed})
	if !result.OK() || printed.String() != "hello from C, across a queue pair\n" {
		t.Errorf("%v\n%s", result.Err, &printed)
	}
}
