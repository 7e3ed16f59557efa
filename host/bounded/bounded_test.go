package bounded

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

func TestRead(t *testing.T) {
	folder := t.TempDir()
	plain, pipe, socket := filepath.Join(folder, "plain"), filepath.Join(folder, "pipe"),
		filepath.Join(folder, "socket")
	loop, dangling, device := filepath.Join(folder, "loop"), filepath.Join(folder, "dangling"),
		filepath.Join(folder, "device")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := errors.Join(os.WriteFile(plain, []byte("0123456789"), 0o600), syscall.Mkfifo(pipe, 0o600),
		os.Symlink("loop", loop), os.Symlink("nowhere", dangling), os.Symlink("/dev/zero", device)); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		path string
		most int64
		want string
		err  error
	}{
		"whole":                 {plain, 100, "0123456789", nil},
		"beginning":             {plain, 4, "0123", nil},
		"pipe without a writer": {pipe, 100, "", nil},
		"directory":             {folder, 100, "", errDirectory},
		"endless device":        {"/dev/zero", 100, "", errDevice},
		"link to a device":      {device, 100, "", errDevice},
		"socket":                {socket, 100, "", errSocket},
		"link to itself":        {loop, 100, "", syscall.ELOOP},
		"link to nothing":       {dangling, 100, "", fs.ErrNotExist},
		"nothing":               {filepath.Join(folder, "none"), 100, "", fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := Read(test.path, test.most)
			if string(text) != test.want || !errors.Is(err, test.err) {
				t.Errorf("%q, %v; expected %q, %v", text, err, test.want, test.err)
			}
		})
	}
}

// A pipe with a writer is read to its end, as `<(command)` of a shell needs.
func TestReadPipe(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	text := strings.Repeat("line\n", 50_000) // more than a pipe holds
	done := make(chan error)
	go func() {
		_, err := writer.WriteString(text)
		done <- errors.Join(err, writer.Close())
	}()
	got, err := Read("/proc/self/fd/"+fdName(reader), 1<<20)
	if err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func fdName(file *os.File) string { return strconv.Itoa(int(file.Fd())) }
