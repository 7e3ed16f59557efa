// Package bounded reads files that a user names: also endless devices, pipes without a writer and files of any size.
// It takes a bounded time and a bounded amount of memory.  A Pace bounds what endless programs print, and a Queue what
// waits for a slow consumer.
package bounded

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Errors for files that cannot be read, in addition to the system's.  Each comes in an *fs.PathError.
var (
	errDirectory = errors.New("it is a directory, and a file is wanted")
	errDevice    = errors.New("it is a device, and a file is wanted")
	errSocket    = errors.New("it is a socket, and a file is wanted")
	errSilent    = errors.New("it is a pipe, and nothing came through it in time")
)

// pipeTime is how long the writer of a pipe may take for everything: `rdmarun validate <(generate)`.
const pipeTime = 10 * time.Second

// Read returns the first `most` bytes of a file or of what comes through a pipe.
func Read(path string, most int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := readable(info.Mode()); err != nil {
		return nil, &fs.PathError{Op: "read", Path: path, Err: err}
	}
	// A pipe without a writer would block in open(2) forever.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info.Mode()&fs.ModeNamedPipe != 0 {
		if err := file.SetReadDeadline(time.Now().Add(pipeTime)); err != nil {
			return nil, err
		}
	}
	text, err := io.ReadAll(io.LimitReader(file, most))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = &fs.PathError{Op: "read", Path: path, Err: errSilent}
	}
	return text, err
}

func readable(mode fs.FileMode) error {
	switch {
	case mode.IsDir():
		return errDirectory
	case mode&fs.ModeDevice != 0:
		return errDevice
	case mode&fs.ModeSocket != 0:
		return errSocket
	}
	return nil
}
