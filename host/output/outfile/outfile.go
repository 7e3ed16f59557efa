package outfile

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"

	"rdmarun/host/printable"
)

// File is a report being written.  A reader of the path sees the report before or the complete new one,
// never a part: it is written beside its place and renamed at the end.
type File struct {
	name   string
	handle *os.File // nil for what is not ours to close
	rename bool
	// nameless tells that the file is in no directory yet: it goes with the process, however that ends.
	nameless bool
	buffer   *bufio.Writer
	// clean leads to buffer: no format has control characters of its own but for line ends.
	clean *printable.Writer
}

func newFile(f File, buffer *bufio.Writer) *File {
	f.buffer, f.clean = buffer, printable.NewWriter(buffer)
	return &f
}

// Create begins the report at a path.  What is there and is no regular file, such as a pipe or a terminal,
// is written to as it is.  Its folder must exist: a misspelled one would only be looked for later.  The caller ends with Commit or Discard.
func Create(name string) (*File, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		handle, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return nil, fmt.Errorf("write the report: %w", err)
		}
		return newFile(File{name: name, handle: handle}, bufio.NewWriter(handle)), nil
	}
	handle, linked, err := temporary(name)
	if err != nil {
		return nil, fmt.Errorf("write the report: %w", err)
	}
	return newFile(File{name: name, handle: handle, rename: true, nameless: !linked}, bufio.NewWriterSize(handle, 1<<16)), nil
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
	if f.rename && err == nil {
		err = f.handle.Chmod(0o644)
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
