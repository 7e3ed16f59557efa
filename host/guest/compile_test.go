package guest_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rdmarun/host/guest"
	"rdmarun/host/guest/wasm"
	"rdmarun/hostfuncs"
)

func TestFilesThatAreNoGuests(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hello, err := os.ReadFile("../../guests/hello/hello.wasm")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		want []string // in the message
	}{
		"text":      {write("text.wasm", "#!/bin/sh\n"), []string{"text: not a WebAssembly module", "wasip1"}},
		"empty":     {write("empty.wasm", ""), []string{"not a WebAssembly module"}},
		"component": {write("component.wasm", "\x00asm\x0d\x00\x01\x00"), []string{"component"}},
		"truncated": {
			write("truncated.wasm", string(hello[:len(hello)-9])), []string{"not a valid WebAssembly module"},
		},
		"cut short": {write("short.wasm", string(hello[:30])), []string{"not a valid WebAssembly module"}},
		"threads":   {"testdata/shared.wasm", []string{"shared between threads"}},
		"library":   {"testdata/library.wasm", []string{"_start", "c-shared"}},
	} {
		r := newRuntime(t, guest.InterruptMetered)
		_, err := r.Compile(testContext(t), c.path)
		var format *guest.FormatError
		if !errors.As(err, &format) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", name, err, want)
			}
		}
		if _, checked := guest.Inspect(c.path); checked == nil || checked.Error() != err.Error() {
			t.Errorf("%s: Inspect says %v, Compile %v", name, checked, err)
		}
	}
}

func TestFileMissing(t *testing.T) {
	_, err := newRuntime(t, guest.InterruptMetered).Compile(testContext(t), "testdata/nonesuch.wasm")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestImportsThatTheHostLacks(t *testing.T) {
	_, err := newRuntime(t, guest.InterruptMetered).Compile(testContext(t), "testdata/newer.wasm")
	var abi *guest.ABIError
	if !errors.As(err, &abi) {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf(
			"newer imports what this host (ABI %d.%d) does not have", hostfuncs.Current.Major, hostfuncs.Current.Minor,
		),
		"rdma.teleport: no such function",
		"rdma.listen: the guest has it as (i32 i64) -> (i32), the host as (i32 i32) -> (i32)",
		"wasi_snapshot_preview1.sock_listen: no such function",
		`env.puts: there is no import module "env", only rdma and wasi_snapshot_preview1`,
		"rdma.memory: only functions can be imported",
		"use a newer rdmarun",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if len(abi.Missing) != 5 {
		t.Errorf("%d imports are missing", len(abi.Missing))
	}
}

func TestModulesAreCompiledOnce(t *testing.T) {
	r := newRuntime(t, guest.InterruptMetered)
	first, again := compileWAT(t, r, "exit"), compileWAT(t, r, "exit")
	if first != again {
		t.Error("the same module was compiled twice")
	}
}

// A module must not know the globals that metering adds: it could undo its own end.
func TestModulesCannotReachWhatMeteringAdds(t *testing.T) {
	_, err := newRuntime(t, guest.InterruptMetered).Compile(testContext(t), "testdata/cheat.wasm")
	if !errors.Is(err, wasm.ErrFormat) {
		t.Error(err)
	}
}

// Names are the module's own, and begin no line of an error about it.
func TestNamesInMessages(t *testing.T) {
	const name = "a\n::error::\x1b[31m"
	text := func(s string) string { return string([]byte{byte(len(s))}) + s }
	// module has a function that traps, by its number among the imported ones, and whatever else.
	module := func(function string, sections ...string) []byte {
		all := append([]string{"\x01" + text("\x01\x60\x00\x00")}, sections...)
		all = append(all, "\x03"+text("\x01\x00"), "\x07"+text("\x01\x06_start\x00"+function), "\x0a"+
			text("\x01\x03\x00\x00\x0b"),
			"\x00"+text("\x04name\x01"+text("\x01"+function+text(name))))
		return []byte("\x00asm\x01\x00\x00\x00" + strings.Join(all, ""))
	}
	r := newRuntime(t, guest.InterruptMetered)
	_, err := r.CompileBytes(
		testContext(t), "guest", module("\x01", "\x02"+text("\x01"+text("rdma")+text(name)+"\x00\x00")),
	)
	if err == nil || !strings.Contains(err.Error(), "\n  rdma.a␊::error::␛[31m: no such function") {
		t.Errorf("%v", err)
	}
	m, err := r.CompileBytes(testContext(t), "guest", module("\x00"))
	if err != nil {
		t.Fatal(err)
	}
	result := r.Run(testContext(t), m, guest.Config{Provider: newProvider(t)})
	if result.Outcome != guest.Trapped || !strings.Contains(result.Err.Error(), "\n  in a␊::error::␛[31m()") {
		t.Errorf("%+v", result)
	}
}
