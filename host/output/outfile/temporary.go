package outfile

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// temporary opens a file in the directory of name: one without a name where the file system can do that
// (O_TMPFILE, open(2)), so that a killed process leaves nothing behind; else one beside it.
func temporary(name string) (file *os.File, linked bool, err error) {
	directory := filepath.Dir(name)
	descriptor, err := unix.Open(directory, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o644)
	if err == nil {
		return os.NewFile(uintptr(descriptor), directory), false, nil
	}
	file, err = os.CreateTemp(directory, "."+filepath.Base(name)+".*")
	return file, true, err
}

// link gives a nameless file a name beside its place.  linkat(2) does not replace what is there; the rename
// that follows does.
func (f *File) link() (beside string, err error) {
	beside = filepath.Join(filepath.Dir(f.name), fmt.Sprintf(".%s.%d", filepath.Base(f.name), os.Getpid()))
	_ = os.Remove(beside) // of a process of that number, long ago
	from := fmt.Sprintf("/proc/self/fd/%d", f.handle.Fd())
	if err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, beside, unix.AT_SYMLINK_FOLLOW); err != nil {
		return f.handle.Name(), fmt.Errorf("link %s: %w", beside, err)
	}
	return beside, nil
}
