package sdk

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The Go kit is compiled here with this module's version of Go, and where it is written with the one that it says.
func TestTheVersionOfGoIsOurs(t *testing.T) {
	ours, err := os.ReadFile("../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	_, want, _ := strings.Cut(goMod, "\n\n")
	if want == "" || !strings.Contains(string(ours), "\n"+want) {
		t.Errorf("go.mod of the kit says %q, and that of rdmarun does not", want)
	}
}

// The module that is written is whole: its tests left out, it needs no other and passes go vet as a guest.
func TestTheWrittenModuleIsWhole(t *testing.T) {
	directory := filepath.Join(t.TempDir(), "kit")
	if err := Write("go", directory); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("go", "vet", GoModule)
	command.Dir = directory
	command.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOPROXY=off", "GOFLAGS=", "GOWORK=off")
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, output)
	}
}

// TestReadme: a written kit says what it is, as the README here does, and stays up to date.
func TestReadme(t *testing.T) {
	here, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range Languages() {
		directory := filepath.Join(t.TempDir(), "kit")
		for range 2 {
			if err := Write(language, directory); err != nil {
				t.Fatal(err)
			}
		}
		text, err := os.ReadFile(filepath.Join(directory, readme))
		if err != nil {
			t.Fatal(err)
		}
		what := kits()[language].what
		if !strings.Contains(string(text), "What is here: "+what+".\n") ||
			!strings.Contains(string(text), "rdmarun sdk "+language+" ") {
			t.Errorf("%s: %s", language, text)
		}
		if !strings.Contains(string(here), "` | "+what) {
			t.Errorf("README.md here does not say of %s that it is %s", language, what)
		}
	}
}

// Every file of a kit's folder is written, its tests left out: embedding leaves out names such as __typedef_sigset_t.h,
// unless a pattern names them.
func TestKitsAreWhole(t *testing.T) {
	for language, k := range kits() {
		t.Run(language, func(t *testing.T) {
			written := t.TempDir()
			if err := Write(language, written); err != nil {
				t.Fatal(err)
			}
			compared := 0
			err := fs.WalkDir(os.DirFS(k.folder), ".", func(name string, entry fs.DirEntry, err error) error {
				if err != nil || entry.IsDir() || strings.HasSuffix(name, "_test.go") {
					return err
				}
				want, err := os.ReadFile(filepath.Join(k.folder, name))
				if err != nil {
					return err
				}
				compared++
				if got, err := os.ReadFile(filepath.Join(written, name)); err != nil || string(got) != string(want) {
					t.Errorf("%s is not written as it is: %v", name, err)
				}
				return nil
			})
			if err != nil || compared == 0 {
				t.Errorf("%d files compared: %v", compared, err)
			}
		})
	}
}

func TestWrite(t *testing.T) {
	const foreign = "foreign\n"
	for name, c := range map[string]struct {
		language string
		there    map[string]string
		occupied string // the file in the way; "" for none
	}{
		"new":                    {"go", nil, ""},
		"foreign text":           {"go", map[string]string{"README": foreign}, ""},
		"a project's README":     {"c", map[string]string{"README.md": foreign}, ""},
		"an older kit":           {"go", map[string]string{"go.mod": goMod, "error.go": foreign}, ""},
		"a removed file":         {"go", map[string]string{"go.mod": goMod, "older.go": foreign}, "older.go"},
		"another module":         {"go", map[string]string{"go.mod": "module " + GoModule + "x\n"}, "go.mod"},
		"sources without go.mod": {"go", map[string]string{"error.go": foreign}, "error.go"},
		"other sources":          {"go", map[string]string{"main.go": foreign}, "main.go"},
		"a folder of headers":    {"c", map[string]string{"other.h": foreign}, ""},
		"another rdma.h":         {"c", map[string]string{"rdma.h": foreign}, "rdma.h"},
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			for file, text := range c.there {
				if err := os.WriteFile(filepath.Join(directory, file), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := Write(c.language, directory)
			var occupied *OccupiedError
			if errors.As(err, &occupied) != (c.occupied != "") || err != nil && occupied == nil {
				t.Fatalf("Write: %v", err)
			}
			if c.occupied != "" && occupied.Path != filepath.Join(directory, c.occupied) {
				t.Errorf("in the way is %s, not %s", occupied.Path, c.occupied)
			}
			for file, text := range c.there {
				now, err := os.ReadFile(filepath.Join(directory, file))
				if err != nil {
					t.Fatal(err)
				}
				written := c.occupied == "" && file == "error.go"
				if (string(now) != text) != written {
					t.Errorf("%s is now %.40q", file, now)
				}
			}
		})
	}
}
