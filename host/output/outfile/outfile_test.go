package outfile

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCommitReplacesTheWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	for _, text := range []string{"first", "second"} {
		file, err := Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if before, err := os.ReadFile(path); err == nil && string(before) != "first" {
			t.Errorf("before the end there is %q", before)
		}
		if err := file.Commit(); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	}
	only(t, path)
}

func TestDiscardLeavesWhatWasThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "report")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	file.Discard()
	if got, err := os.ReadFile(path); err != nil || string(got) != "before" {
		t.Errorf("%q, %v", got, err)
	}
	only(t, path)
}

// only checks that nothing else is beside path.
func only(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}
