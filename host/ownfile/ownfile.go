// Package ownfile opens the files that rdmarun writes where a user names them. That may be a folder into which other
// users write, such as /tmp. Other users cannot decide there what is written to, or read what this user did not share.
//
// An existing file is written to if it belongs to this user or to root and has no second name. A symbolic link is
// followed if it belongs to one of them. Devices are opened as they are, and a file in /proc/self/fd (/dev/stdout) is
// open already.
package ownfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The modes of files that are made; the umask takes from them.
const (
	// Private is for captures, traces, packs: the data of a run, and what is run.
	Private = 0o600
	// Shared is for reports, records and logs: collectors of other users read them.
	Shared = 0o644
)

// maxLinks bounds how many symbolic links are followed, and maxTries how often another process may remove what was
// there.
const (
	maxLinks = 8
	maxTries = 8
)

// Create opens a file for writing, and makes it empty.
func Create(path string, mode uint32) (*os.File, error) {
	return Open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
}

// Open opens a file as os.OpenFile does with these flags and that mode.
func Open(path string, flags int, mode uint32) (*os.File, error) {
	descriptor, err := request{flags | unix.O_CLOEXEC, mode}.open(unix.AT_FDCWD, path, maxLinks)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(descriptor), path), nil
}

// Nameless creates a file without a name, to be read and written with these flags. It disappears with its process,
// however that ends. It is in the folder of temporary files (O_TMPFILE of open(2)), or in memory where the process may
// not write there.
func Nameless(flags int) (*os.File, error) {
	flags |= unix.O_RDWR | unix.O_CLOEXEC
	descriptor, err := unix.Open(os.TempDir(), flags|unix.O_TMPFILE, Private)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR) { // a file system, or a kernel, without them
		return named(flags)
	}
	if err != nil {
		descriptor, err = unix.MemfdCreate("rdmarun", unix.MFD_CLOEXEC)
	}
	if err == nil && flags&unix.O_APPEND != 0 {
		_, err = unix.FcntlInt(uintptr(descriptor), unix.F_SETFL, unix.O_APPEND)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "make a file in", Path: os.TempDir(), Err: err}
	}
	return os.NewFile(uintptr(descriptor), "nameless"), nil
}

// named makes a file in the folder of temporary files, and removes its name.
func named(flags int) (*os.File, error) {
	made, err := os.CreateTemp("", "rdmarun-*")
	if err != nil {
		return nil, err
	}
	file, err := os.OpenFile(made.Name(), flags, 0)
	if err = errors.Join(err, os.Remove(made.Name()), made.Close()); err != nil {
		_ = file.Close() // nil is none
		return nil, err
	}
	return file, nil
}

// request is how a file is to be opened.
type request struct {
	flags int
	mode  uint32 // of a file that is made
}

// open opens a path that begins in a folder.
func (r request) open(folder int, path string, links int) (int, error) {
	// The folder is the same for all that follows.
	parent, err := unix.Openat(folder, filepath.Dir(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	defer unix.Close(parent)
	name := filepath.Base(path)
	for range maxTries {
		if r.flags&unix.O_CREAT != 0 {
			made, err := unix.Openat(parent, name, r.flags&^unix.O_TRUNC|unix.O_EXCL|unix.O_NOFOLLOW, r.mode)
			if !errors.Is(err, unix.EEXIST) {
				return made, err
			}
		}
		there, err := unix.Openat(parent, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if errors.Is(err, unix.ENOENT) && r.flags&unix.O_CREAT != 0 {
			continue // it was removed just now
		}
		if err != nil {
			return -1, err
		}
		opened, err := r.openThere(parent, there, name, links)
		return opened, errors.Join(err, unix.Close(there))
	}
	return -1, errors.New("other processes make and remove it again and again")
}

// openThere opens what has that name in a folder, and was opened by O_PATH.
func (r request) openThere(parent, there int, name string, links int) (int, error) {
	var status unix.Stat_t
	if err := unix.Fstat(there, &status); err != nil {
		return -1, err
	}
	foreign := int(status.Uid) != os.Geteuid() && status.Uid != 0
	switch status.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		var system unix.Statfs_t
		if err := unix.Fstatfs(there, &system); err != nil {
			return -1, err
		}
		switch {
		case system.Type == unix.PROC_SUPER_MAGIC: // its target is no path
			return unix.Openat(parent, name, r.flags&^unix.O_CREAT, 0)
		case foreign:
			return -1, fmt.Errorf("it is a symbolic link of user %d; remove it, or name another path", status.Uid)
		case links == 0:
			return -1, unix.ELOOP
		}
		target := make([]byte, unix.PathMax)
		length, err := unix.Readlinkat(there, "", target)
		if err != nil {
			return -1, err
		}
		return r.open(parent, string(target[:length]), links-1)
	case unix.S_IFCHR, unix.S_IFBLK:
	case unix.S_IFREG:
		if !foreign && status.Nlink > 1 {
			return -1, errors.New("it has a second name (a hard link); remove it, or name another path")
		}
		fallthrough
	default:
		if foreign {
			return -1, fmt.Errorf("it belongs to user %d; remove it, or name another path", status.Uid)
		}
	}
	// By its descriptor: the name may be another's by now.
	for {
		opened, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", there), r.flags&^unix.O_CREAT, 0)
		if !errors.Is(err, unix.EINTR) {
			return opened, err
		}
	}
}

// Harmless keeps of a name what every file system and shell takes.
func Harmless(text string) string {
	var b strings.Builder
	for _, c := range text {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '.', c == '-', c == '=':
			b.WriteRune(c)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-.")
}
