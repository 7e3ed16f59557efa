package program

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestChildrenFirst(t *testing.T) {
	folder := t.TempDir()
	deep := filepath.Join(folder, "deep", "deeper")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(deep, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{filepath.Join(deep, "file"), deep, filepath.Dir(deep), folder}
	if got := childrenFirst(folder); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Links do not lead out of the tree.
func TestMakeWritable(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	folder := filepath.Join(t.TempDir(), "folder")
	shut, inner := filepath.Join(folder, "shut"), filepath.Join(folder, "shut", "inner")
	for _, path := range []string{outside, inner} {
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(shut, "link")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{inner, shut, folder} {
		if err := os.Chmod(path, 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := makeWritable(folder); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(folder), "replaced")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	if err := makeWritable(link); err == nil {
		t.Error("a link was taken for the folder")
	}
	for path, want := range map[string]fs.FileMode{folder: 0o700, shut: 0o700, inner: 0o700, outside: 0o755} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info, err, want)
		}
	}
}
