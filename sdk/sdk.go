// Package sdk has the kits that guests are written with, and writes them to a folder, so that a guest needs nothing else of
// this project.  The one for Go, rdma, is a package of this module where it stands; where it is written it is a module of its
// own, under the same path.
package sdk

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// GoModule is the path of the Go kit, both as a package here and as the module that Write makes of it.
const GoModule = "rdmarun/sdk/rdma"

// goMod makes the Go kit a module.  It requires none; its version of Go is that of this module (a test compares).
const goMod = "module " + GoModule + "\n\ngo 1.25.0\n"

//go:embed rdma/*.go c/*.h rust/*.rs assemblyscript/*.ts
var sources embed.FS

// kit is the kit of one language.
type kit struct {
	folder string // in sources
	extra  map[string]string
	// mark is the file by whose first line a folder is known to have a kit of this language.
	mark string
	// alone says that the folder may hold no other sources: those of an older kit would be compiled with this one.
	alone bool
}

func kits() map[string]kit {
	return map[string]kit{
		"go":             {folder: "rdma", extra: map[string]string{"go.mod": goMod}, mark: "go.mod", alone: true},
		"c":              {folder: "c", mark: "rdma.h"},
		"assemblyscript": {folder: "assemblyscript", mark: "sys.ts"},
		"rust":           {folder: "rust", mark: "mod.rs"},
	}
}

// OccupiedError says that a folder has a file that an SDK must not be written over, or beside.
type OccupiedError struct{ Path, Why string }

func (e *OccupiedError) Error() string { return e.Path + " " + e.Why }

// Languages lists those that there is a kit for.
func Languages() []string { return slices.Sorted(maps.Keys(kits())) }

// Write writes the kit of a language to a folder, which it makes.  What an earlier Write left there it brings up to date;
// any other file in its way is an *OccupiedError.
func Write(language, directory string) error {
	k, ok := kits()[language]
	if !ok {
		return fmt.Errorf("there is no SDK for %q; there are: %s", language, strings.Join(Languages(), ", "))
	}
	files, err := k.files()
	if err != nil {
		return err
	}
	if err := k.mayWrite(directory, files); err != nil {
		return err
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(files[name]), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// files are the kit's files by name, without its tests.
func (k kit) files() (map[string]string, error) {
	entries, err := sources.ReadDir(k.folder)
	if err != nil {
		return nil, err
	}
	files := maps.Clone(k.extra)
	if files == nil {
		files = map[string]string{}
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		text, err := sources.ReadFile(path.Join(k.folder, entry.Name()))
		if err != nil {
			return nil, err
		}
		files[entry.Name()] = string(text)
	}
	return files, nil
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
	for _, entry := range entries {
		_, known := files[entry.Name()]
		switch {
		case known && !ours:
			return &OccupiedError{filepath.Join(directory, entry.Name()), "was not written by rdmarun"}
		case !known && k.alone && filepath.Ext(entry.Name()) == ".go":
			return &OccupiedError{filepath.Join(directory, entry.Name()), "is no file of this SDK, and would be compiled with it"}
		}
	}
	return nil
}
