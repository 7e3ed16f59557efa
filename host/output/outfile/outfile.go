// Package outfile writes the files of reports: whole or not at all.
package outfile

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rdmarun/host/ownfile"
	"rdmarun/host/printable"
)

// File is a report being written. A reader of the path sees the old report or the complete new one, never a part. It
// is written under another name and renamed at the end.
type File struct {
	name   string
	handle *os.File // nil for what the caller closes
	rename bool
	// nameless: the file is in no directory yet, and disappears with the process.
	nameless bool
	buffer   *bufio.Writer
	// clean writes to buffer: no format has control characters of its own except line ends.
	clean *printable.Writer
}

func newFile(f File, buffer *bufio.Writer) *File {
	f.buffer, f.clean = buffer, printable.NewWriter(buffer)
	return &f
}

// Create begins the report at a path.  It writes directly to a pipe, a terminal or anything else that is not a regular
// file.  The folder must exist, so that a misspelled path is an error.  The caller ends with Commit or Discard.
func Create(name string) (*File, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		handle, err := ownfile.Open(name, os.O_WRONLY, ownfile.Shared)
		if err != nil {
			return nil, fmt.Errorf("write the report: %w", err)
		}
		return newFile(File{name: name, handle: handle}, bufio.NewWriter(handle)), nil
	}
	handle, linked, err := temporary(name)
	if err != nil {
		return nil, fmt.Errorf("write the report: %w", err)
	}
	return newFile(
		File{name: name, handle: handle, rename: true, nameless: !linked}, bufio.NewWriterSize(handle, 1<<16),
	), nil
}

// To writes to w, which stays open.
func To(w io.Writer, name string) *File {
	return newFile(File{name: name}, bufio.NewWriter(w))
}

// Name is the path, for messages.
func (f *File) Name() string { return f.name }

// Write implements io.Writer.
func (f *File) Write(data []byte) (int, error) {
	n, err := f.clean.Write(data)
	return n, f.wrap(err)
}

// Flush passes on what was written so far: for reports that are read while they grow.
func (f *File) Flush() error { return f.wrap(f.buffer.Flush()) }

// Commit completes the report and puts it in its place.
func (f *File) Commit() error {
	err := f.buffer.Flush()
	if f.handle == nil {
		return f.wrap(err)
	}
	beside := f.handle.Name()
	if f.nameless && err == nil {
		beside, err = f.link()
	}
	err = errors.Join(err, f.handle.Close())
	if f.rename && err == nil {
		err = os.Rename(beside, f.name)
	}
	if f.rename && err != nil && (!f.nameless || beside != f.handle.Name()) {
		_ = os.Remove(beside)
	}
	f.handle = nil
	return f.wrap(err)
}

// Discard drops the report; what was at its path before stays.  After Commit it does nothing.
func (f *File) Discard() {
	if f.handle == nil {
		return
	}
	_ = f.handle.Close()
	if f.rename && !f.nameless {
		_ = os.Remove(f.handle.Name())
	}
	f.handle = nil
}

func (f *File) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("write the report %s: %w", f.name, err)
}

// temporary opens a file in the directory of name.  It has no name where the file system can do that
// (O_TMPFILE, open(2)), so that a killed process leaves nothing behind; else a temporary name.
func temporary(name string) (file *os.File, linked bool, err error) {
	directory := filepath.Dir(name)
	descriptor, err := unix.Open(directory, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, ownfile.Shared)
	if err == nil {
		return os.NewFile(uintptr(descriptor), directory), false, nil
	}
	file, err = os.OpenFile(besideOf(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, ownfile.Shared)
	return file, true, err
}

// besideOf is a random name in the folder of name.
func besideOf(name string) string {
	return filepath.Join(filepath.Dir(name), "."+filepath.Base(name)+"."+rand.Text())
}

// link gives a nameless file a temporary name.  linkat(2) does not replace an existing file; the rename
// that follows does.
func (f *File) link() (beside string, err error) {
	beside = besideOf(f.name)
	from := fmt.Sprintf("/proc/self/fd/%d", f.handle.Fd())
	if err := unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, beside, unix.AT_SYMLINK_FOLLOW); err != nil {
		return f.handle.Name(), fmt.Errorf("link %s: %w", beside, err)
	}
	return beside, nil
}

// Spool holds parts of a report until everything before them is known.  It is a file without a name: it disappears with
// the process, however that ends.  The zero Spool is ready to use; Close frees it.
type Spool struct {
	file   *os.File
	buffer *bufio.Writer
	size   int64
}

// Part is a stretch of a spool.
type Part struct{ offset, length int64 }

// Write implements io.Writer: it appends.
func (s *Spool) Write(data []byte) (int, error) {
	if s.file == nil {
		if err := s.create(); err != nil {
			return 0, err
		}
	}
	n, err := s.buffer.Write(data)
	s.size += int64(n)
	return n, err
}

func (s *Spool) create() error {
	file, err := ownfile.Nameless(0)
	if err != nil {
		return fmt.Errorf("hold parts of a report: %w", err)
	}
	s.file, s.buffer = file, bufio.NewWriterSize(file, 1<<16)
	return nil
}

// Append calls write to append a part, and adds it to parts; if it follows the last of them, that grows instead.
func (s *Spool) Append(parts []Part, write func(io.Writer) error) ([]Part, error) {
	begin := s.size
	if err := write(s); err != nil {
		return parts, err
	}
	length := s.size - begin
	if n := len(parts); n > 0 && parts[n-1].offset+parts[n-1].length == begin {
		parts[n-1].length += length
		return parts, nil
	}
	return append(parts, Part{begin, length}), nil
}

// Copy writes parts to out.
func (s *Spool) Copy(out io.Writer, parts []Part) error {
	if s.file == nil {
		return nil
	}
	if err := s.buffer.Flush(); err != nil {
		return fmt.Errorf("hold parts of a report: %w", err)
	}
	for _, part := range parts {
		if _, err := io.Copy(out, io.NewSectionReader(s.file, part.offset, part.length)); err != nil {
			return err
		}
	}
	return nil
}

// Close drops what it holds.
func (s *Spool) Close() {
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
}
