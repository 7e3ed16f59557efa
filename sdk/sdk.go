// Package sdk has the kits that guests are written with, and writes them to a folder. So a guest needs nothing else of
// this project. The one for Go, rdma, is a package of this module here. In the folder it is a module of its own, under
// the same path.
package sdk

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// GoModule is the path of the Go kit, both as a package here and as the module that Write makes of it.
const GoModule = "rdmarun/sdk/rdma"

// goMod makes the Go kit a module.  It requires none; its version of Go is that of this module (a test compares).
const goMod = "module " + GoModule + "\n\ngo 1.25.0\n"

// cargoToml makes the Rust kit a crate, for guests that would rather have one than a module.
const cargoToml = `[package]
name = "rdma"
version = "0.0.0"
edition = "2021"
rust-version = "1.63"
description = "librdmacm and libibverbs for guests of rdmarun"

[lib]
path = "mod.rs"
`

//go:embed rdma/*.go c/*.h rust/*.rs assemblyscript/*.ts javascript/*.ts
//go:embed librdmacm/*.c librdmacm/*.h librdmacm/*.s librdmacm/build
//go:embed all:librdmacm/include
var sources embed.FS

// kit is the kit of one language.
type kit struct {
	folder string // in sources
	what   string // it is
	extra  map[string]string
	// mark is the file that shows, by its first line, that a folder has a kit of this language.
	mark string
	// alone says that the folder may hold no other sources: those of an older kit would be compiled with this one.
	alone bool
}

func kits() map[string]kit {
	return map[string]kit{
		"go": {
			folder: "rdma", what: "a Go module without dependencies", extra: map[string]string{"go.mod": goMod},
			mark: "go.mod", alone: true,
		},
		"c": {folder: "c", what: "`rdma.h`, the whole ABI, and `helpers.h`; for C++ too", mark: "rdma.h"},
		"assemblyscript": {
			folder: "assemblyscript",
			what: "`sys.ts` is the ABI, `call.ts` its functions without pointers, `rdma.ts` classes above it, " +
				"`wasi.ts` what the language lacks of WASI",
			mark: "sys.ts",
		},
		"javascript": {
			folder: "javascript", what: "`rdma.d.ts`, the types for an editor; rdmarun runs scripts itself",
			mark: "rdma.d.ts",
		},
		"librdmacm": {
			folder: "librdmacm", what: "librdmacm and libibverbs for unchanged C programs",
			extra: map[string]string{"rdma.h": header()}, mark: "errors.c",
		},
		"rust": {
			folder: "rust",
			what: "a crate, or a module of your own crate: `sys.rs` is the ABI, `call.rs` its functions with types " +
				"of Rust, the rest a safe layer",
			extra: map[string]string{"Cargo.toml": cargoToml}, mark: "mod.rs",
		},
	}
}

// header is what the library for programs of librdmacm is written with itself.
func header() string {
	text, err := sources.ReadFile("c/rdma.h")
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// OccupiedError says that a folder has a file that an SDK must not overwrite, or be mixed with.
type OccupiedError struct{ Path, Why string }

func (e *OccupiedError) Error() string { return e.Path + " " + e.Why }

// Languages lists those that there is a kit for.
func Languages() []string { return slices.Sorted(maps.Keys(kits())) }

// Write writes the kit of a language to a folder, which it makes.  What an earlier Write left there it brings up to
// date; any other file in its way is an *OccupiedError.
func Write(language, directory string) error {
	k, ok := kits()[language]
	if !ok {
		return fmt.Errorf("there is no SDK for %q; there are: %s", language, strings.Join(Languages(), ", "))
	}
	files, err := k.files()
	if err != nil {
		return err
	}
	if err := k.explain(language, directory, files); err != nil {
		return err
	}
	if err := k.mayWrite(directory, files); err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(directory) // no link in it leads out
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		file := filepath.FromSlash(name)
		if err := root.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(files[name], "#!") {
			mode = 0o755
		}
		if err := root.WriteFile(file, []byte(files[name]), mode); err != nil {
			return err
		}
	}
	return nil
}

// readme is what a folder with a kit says of itself.
const readme = "README.md"

// explain adds that file, unless the folder has another one: a kit may be written to the folder of a project.
func (k kit) explain(language, directory string, files map[string]string) error {
	heading := "# rdmarun: kit for guests in " + language + "\n"
	switch there, err := os.ReadFile(filepath.Join(directory, readme)); {
	case err == nil && !strings.HasPrefix(string(there), heading):
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR):
		return err
	}
	files[readme] = heading + fmt.Sprintf(`
What is here: %s.

| command | what it does |
| --- | --- |
| %[2]srdmarun sdk %[3]s DIRECTORY%[2]s | bring these files up to date, which you should not change |
| %[2]srdmarun new NAME --template guest-LANGUAGE%[2]s | write a project that uses a kit |
| %[2]srdmarun guest run MODULE%[2]s | run a guest |
| %[2]srdmarun abi%[2]s | print the functions of the ABI |
`, k.what, "`", language)
	return nil
}

// files are the kit's files by name, without its tests.
func (k kit) files() (map[string]string, error) {
	files := maps.Clone(k.extra)
	if files == nil {
		files = map[string]string{}
	}
	err := fs.WalkDir(sources, k.folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") {
			return err
		}
		text, err := sources.ReadFile(name)
		files[strings.TrimPrefix(name, k.folder+"/")] = string(text)
		return err
	})
	return files, err
}

// mayWrite looks whether all that is in the way was written by an earlier Write.
func (k kit) mayWrite(directory string, files map[string]string) error {
	entries, err := os.ReadDir(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mark, err := os.ReadFile(filepath.Join(directory, k.mark))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	firstLine, _, _ := strings.Cut(files[k.mark], "\n")
	ours := strings.HasPrefix(string(mark), firstLine+"\n")
	if mark != nil && !ours {
		return &OccupiedError{filepath.Join(directory, k.mark), "was not written by rdmarun"}
	}
	for _, entry := range entries {
		_, known := files[entry.Name()]
		switch {
		case known && !ours:
			return &OccupiedError{filepath.Join(directory, entry.Name()), "was not written by rdmarun"}
		case !known && k.alone && filepath.Ext(entry.Name()) == ".go":
			return &OccupiedError{
				filepath.Join(directory, entry.Name()), "is not a file of this SDK, and would be compiled with it",
			}
		}
	}
	return nil
}
