package outfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

// only checks that there is nothing else in the folder of path.
func only(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestSpool(t *testing.T) {
	var spool Spool
	defer spool.Close()
	var want [2]strings.Builder
	var parts [2][]Part
	long := strings.Repeat("x", 1<<12)
	for i := range 100 {
		text := fmt.Sprintf("%d%s\n", i, long)
		which := i / 3 % 2 // neighbours become one part
		want[which].WriteString(text)
		var err error
		if parts[which], err = spool.Append(parts[which], func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range parts {
		var got bytes.Buffer
		if err := spool.Copy(&got, parts[i]); err != nil || got.String() != want[i].String() {
			t.Errorf("%d: %d bytes, want %d; %v", i, got.Len(), want[i].Len(), err)
		}
		if len(parts[i]) != 17 {
			t.Errorf("%d: %d parts", i, len(parts[i]))
		}
	}
	if err := spool.Copy(io.Discard, nil); err != nil {
		t.Error(err)
	}
	empty := Spool{}
	if err := empty.Copy(io.Discard, nil); err != nil {
		t.Error(err)
	}
}

// TestPlacesOfOthers: a link is replaced and never followed, made by any user, and another user's
// pipe gets nothing.
func TestPlacesOfOthers(t *testing.T) {
	folder := t.TempDir()
	path, target := filepath.Join(folder, "report"), filepath.Join(folder, "target")
	if err := errors.Join(os.WriteFile(target, []byte("theirs"), 0o600), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	file, err := Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.Write([]byte("mine")); err != nil {
		t.Fatal(err)
	}
	if err := file.Commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(target); err != nil || string(got) != "theirs" {
		t.Errorf("the target: %q, %v", got, err)
	}
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o133 != 0 {
		t.Errorf("the report: %v, %v", info, err)
	}
	if os.Geteuid() != 0 {
		t.Skip("only root gives a pipe to another user")
	}
	pipe := filepath.Join(folder, "pipe")
	if err := errors.Join(unix.Mkfifo(pipe, 0o666), os.Chown(pipe, 65533, 65533)); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(pipe); err == nil || !strings.Contains(err.Error(), "belongs to user 65533") {
		t.Error(err)
	}
}
