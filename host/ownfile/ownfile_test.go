package ownfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// stranger is a user who has no files here.
const stranger = 65533

// TestCreate opens existing paths. A file of this user is written to. A file of another user is rejected and not
// changed.
func TestCreate(t *testing.T) {
	give := func(t *testing.T, path string) {
		t.Helper()
		if os.Geteuid() != 0 {
			t.Skip("only root gives files to another user")
		}
		if err := os.Lchown(path, stranger, stranger); err != nil {
			t.Fatal(err)
		}
	}
	write := func(t *testing.T, path string) {
		t.Helper()
		if err := os.WriteFile(path, []byte("old, and longer"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, test := range map[string]struct {
		// make makes what is there, and returns the file that is written to, or must not be.
		make func(t *testing.T, path string) string
		want string // in the error
	}{
		"nothing":  {func(_ *testing.T, path string) string { return path }, ""},
		"own file": {func(t *testing.T, path string) string { write(t, path); return path }, ""},
		"own link": {func(t *testing.T, path string) string {
			write(t, path+".target")
			return link(t, path+".target", path)
		}, ""},
		"own link within the folder": {func(t *testing.T, path string) string {
			write(t, path+".target")
			link(t, filepath.Base(path)+".target", path)
			return path + ".target"
		}, ""},
		"own link to nothing": {func(t *testing.T, path string) string { return link(t, path+".target", path) }, ""},
		"link to itself": {
			func(t *testing.T, path string) string { link(t, path, path); return "" },
			"too many levels of symbolic links",
		},
		"a folder": {
			func(t *testing.T, path string) string { mustBeNil(t, os.Mkdir(path, 0o700)); return "" }, "is a directory",
		},
		"a folder that is not": {
			func(t *testing.T, path string) string { mustBeNil(t, os.Remove(filepath.Dir(path))); return "" },
			"no such file",
		},
		"a second name": {func(t *testing.T, path string) string {
			write(t, path+".target")
			mustBeNil(t, os.Link(path+".target", path))
			return path + ".target"
		}, "a second name"},
		"file of another": {
			func(t *testing.T, path string) string { write(t, path); give(t, path); return path },
			"belongs to user 65533",
		},
		"link of another": {func(t *testing.T, path string) string {
			write(t, path+".target")
			link(t, path+".target", path)
			give(t, path)
			return path + ".target"
		}, "symbolic link of user 65533"},
		"link of another to nothing": {func(t *testing.T, path string) string {
			link(t, path+".target", path)
			give(t, path)
			return path + ".target"
		}, "symbolic link of user 65533"},
		"own link to a file of another": {func(t *testing.T, path string) string {
			write(t, path+".target")
			give(t, path+".target")
			return link(t, path+".target", path)
		}, "belongs to user 65533"},
		"pipe of another": {func(t *testing.T, path string) string {
			mustBeNil(t, unix.Mkfifo(path, 0o666))
			give(t, path)
			return ""
		}, "belongs to user 65533"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "folder", "file")
			mustBeNil(t, os.Mkdir(filepath.Dir(path), 0o700))
			target := test.make(t, path)
			before, beforeErr := os.ReadFile(target)
			file, err := Create(path, Private)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("%v, want %q", err, test.want)
				}
				if after, err := os.ReadFile(target); string(after) != string(before) ||
					errors.Is(err, fs.ErrNotExist) != errors.Is(beforeErr, fs.ErrNotExist) {
					t.Errorf("%s is %q, %v; before %q, %v", target, after, err, before, beforeErr)
				}
				return
			}
			mustBeNil(t, err)
			_, err = io.WriteString(file, "new")
			mustBeNil(t, errors.Join(err, file.Close()))
			if got, err := os.ReadFile(target); string(got) != "new" {
				t.Errorf("%q, %v", got, err)
			}
			if info, err := os.Stat(target); err != nil || beforeErr != nil && info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

// TestOpenStreams writes to what is not a file: a device, a pipe by its name, and one by its descriptor.
func TestOpenStreams(t *testing.T) {
	reader, writer, err := os.Pipe()
	mustBeNil(t, err)
	defer reader.Close()
	defer writer.Close()
	pipe := filepath.Join(t.TempDir(), "pipe")
	mustBeNil(t, unix.Mkfifo(pipe, 0o600))
	if _, err := Open(pipe, os.O_WRONLY|os.O_CREATE|unix.O_NONBLOCK, Private); !errors.Is(err, unix.ENXIO) {
		t.Errorf("a pipe without a reader: %v", err)
	}
	named, err := os.OpenFile(pipe, os.O_RDWR, 0)
	mustBeNil(t, err)
	defer named.Close()
	for path, from := range map[string]*os.File{
		"/dev/null": nil, pipe: named, filepath.Join("/proc/self/fd", fmt.Sprint(writer.Fd())): reader,
		filepath.Join("/dev/fd", fmt.Sprint(writer.Fd())): reader,
	} {
		file, err := Create(path, Private)
		if err != nil {
			t.Error(err)
			continue
		}
		_, err = io.WriteString(file, path)
		mustBeNil(t, errors.Join(err, file.Close()))
		if from == nil {
			continue
		}
		got := make([]byte, len(path))
		if _, err := io.ReadFull(from, got); err != nil || string(got) != path {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
}

func link(t *testing.T, target, path string) string {
	t.Helper()
	mustBeNil(t, os.Symlink(target, path))
	return target
}

func mustBeNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
