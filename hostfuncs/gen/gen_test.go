package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rdmarun/hostfuncs"
	"rdmarun/hostfuncs/model"
)

// repository is the top, seen from this folder.
const repository = "../.."

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	files, err := generate(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		have, err := os.ReadFile(filepath.Join(repository, f.path))
		if err != nil || !bytes.Equal(have, f.content) {
			t.Errorf("%s is not what the table makes (%v): run go generate ./hostfuncs", f.path, err)
		}
	}
}

// The header's asserts compare every offset with what a C compiler makes of its structs.
func TestHeaderCompiles(t *testing.T) {
	for _, c := range []struct {
		compiler string
		flags    []string
	}{
		{"cc", []string{"-std=c11", "-x", "c"}},
		{"c++", []string{"-std=c++17", "-x", "c++"}},
		{"clang", []string{"--target=wasm32", "-ffreestanding", "-std=c11", "-x", "c"}},
	} {
		t.Run(c.compiler, func(t *testing.T) {
			if _, err := exec.LookPath(c.compiler); err != nil {
				t.Skip(err)
			}
			args := append(
				c.flags, "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fsyntax-only",
				filepath.Join(repository, "sdk/c/helpers.h"),
			)
			if out, err := exec.Command(c.compiler, args...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// Every function of the ABI is in every SDK and in the reference, under its own name.
func TestEveryFunctionIsEverywhere(t *testing.T) {
	m := model.Of()
	imports, err := goImports(&m)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range hostfuncs.Functions() {
		for where, c := range map[string]struct {
			text    []byte
			pattern string
		}{
			"the Go SDK": {imports, `//go:wasmimport rdma ` + f.Name + `\n`},
			"the C header": {
				cHeader(&m), `RDMARUN_IMPORT\(` + f.Name + `\)\nint32_t rdmarun_` + f.Name + `\(`,
			},
			"the Rust SDK": {rustSys(&m), `\n    pub fn ` + f.Name + `_?\(`},
			"the SDK for AssemblyScript": {
				assemblySys(&m), `@external\("rdma", "` + f.Name + `"\)\nexport declare function ` + f.Name + `_?\(`,
			},
			"the declarations for scripts": {typescript(&m), `\n  ` + f.Name + `\(`},
			"the reference":                {reference(&m), `\n### ` + f.Name + `\n`},
		} {
			if !regexp.MustCompile(c.pattern).Match(c.text) {
				t.Errorf("%s is not in %s", f.Name, where)
			}
		}
	}
}

// A host function that no exported function of the Go SDK calls is an error of go generate.
func TestGoSDKReachesEveryFunction(t *testing.T) {
	m := model.Of()
	declared, err := readGo(filepath.Join(repository, "sdk", "rdma"))
	if err != nil {
		t.Fatal(err)
	}
	if got := declared.callers("abiCreateSRQ"); !slices.Equal(got, []string{"PD.CreateSRQ"}) {
		t.Errorf("create_srq is called by %q", got)
	}
	delete(declared, "PD.CreateSRQ")
	if _, err := goNames(&m, declared); err == nil || !strings.HasPrefix(err.Error(), "create_srq: ") {
		t.Error(err)
	}
}

// The safe layers of Rust and AssemblyScript call each host function. The generated one does or, if a program gives
// memory for longer than the call, a class that owns the memory.
func TestSafeLayersReachEveryFunction(t *testing.T) {
	m := model.Of()
	for language, layer := range map[string]struct {
		generated []byte
		byHand    string // files
		call      string // of the lowest layer; NAME is the function
	}{
		"rust":           {rustCall(&m), "sdk/rust/*.rs", `\bsys::NAME_?\(`},
		"assemblyscript": {assemblyCall(&m), "sdk/assemblyscript/*.ts", `\bsys\.NAME_?\(`},
	} {
		t.Run(language, func(t *testing.T) {
			var classes []byte
			files, err := filepath.Glob(filepath.Join(repository, filepath.FromSlash(layer.byHand)))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if strings.HasPrefix(filepath.Base(file), "sys.") || strings.HasPrefix(filepath.Base(file), "call.") {
					continue
				}
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				classes = append(classes, text...)
			}
			for _, f := range m.Functions {
				call := regexp.MustCompile(strings.Replace(layer.call, "NAME", f.Name, 1))
				generated := call.Match(layer.generated)
				if !generated && !call.Match(classes) {
					t.Errorf("no safe function calls %s", f.Name)
				}
				if generated && (f.Keeps || language == "rust" && keepsMemory(&f)) {
					t.Errorf("%s keeps memory, and the generated function does not own it", f.Name)
				}
			}
		})
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string]string{
		"RDMA_WRITE_WITH_IMM": "RDMAWriteWithImm", "create_ep": "CreateEP", "timeout_ns": "TimeoutNS",
		"LOC_EEC_OP_ERR": "LocEECOpErr", "SUCCESS": "Success",
	} {
		if got := exported(name); got != want {
			t.Errorf("%s is %s in Go, not %s", name, got, want)
		}
	}
	if got := unexported("num_sges"); got != "numSGEs" {
		t.Error(got)
	}
}

func TestWrap(t *testing.T) {
	if got, want := wrap("one two three", "// ", 10), "// one two\n// three\n"; got != want {
		t.Errorf("%q", got)
	}
}
