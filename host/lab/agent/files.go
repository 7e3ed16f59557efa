package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rdmarun/host/bus"
	"rdmarun/host/lab"
	"rdmarun/host/pack"
	"rdmarun/host/scenario"
)

// files are those of a pack, in memory: an agent that is killed leaves none behind, and no full disk is in its way.  A
// file has the path of its descriptor, which any code of this process opens.
type files map[string]*os.File

// maxName is how long the name of a file in memory may be, in bytes: memfd_create(2) takes 249.
const maxName = 249

// create makes a file.
func (f files) create(path string) (io.WriteCloser, error) {
	name := filepath.Base(path) // shown only by tools that list this process's files
	descriptor, err := unix.MemfdCreate(name[:min(len(name), maxName)], unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("a file in memory: %w", err)
	}
	made := os.NewFile(uintptr(descriptor), path)
	f[filepath.Clean(path)] = made
	return stays{made}, nil
}

// stays is a file that its writer does not close.
type stays struct{ *os.File }

func (stays) Close() error { return nil }

// close frees the files.
func (f files) close() {
	for _, each := range f {
		_ = each.Close() // of memory
	}
}

// path is what opens a file of the pack; of what is not in it nothing does.
func (f files) path(within string) string {
	if found := f[within]; found != nil {
		return descriptor(found)
	}
	if !filepath.IsLocal(within) {
		within = "and outside of its folder"
	}
	return filepath.Join("/proc/self/fd/not in the pack", within)
}

// opens reports whether a path is that of a file of the pack, and of no other that this process has open.
func (f files) opens(path string) bool {
	for _, each := range f {
		if path == descriptor(each) {
			return true
		}
	}
	return false
}

func descriptor(file *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", file.Fd()) }

// locate finds the files of the controller's paths.
func (f files) locate(from lab.Files) scenario.Locate {
	return func(path string) string {
		if f.opens(path) {
			return path // it was located before
		}
		path = filepath.Clean(path)
		for archive, at := range from.Archives {
			if within, ok := strings.CutPrefix(path, archive); ok && (within == "" || within[0] == filepath.Separator) {
				path = filepath.Join(at, within)
			}
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(from.Folder, path)
		}
		within, err := filepath.Rel(from.Base, path)
		if err != nil {
			within = path
		}
		return f.path(within)
	}
}

// fetch brings the pack of the order.
func (r *run) fetch(ctx context.Context) error {
	order := r.order
	if order.Length < 0 || order.Length > lab.MaxPack {
		return fmt.Errorf("%d bytes are too many", order.Length)
	}
	var archive bytes.Buffer
	for archive.Len() < order.Length {
		question, err := json.Marshal(lab.Part{Pack: order.Pack, Offset: archive.Len()})
		if err != nil {
			return err
		}
		part, err := r.conn.Request(ctx, bus.From(r.conn.Name(), lab.SubjectPart), question)
		if err != nil {
			return err
		}
		if len(part) == 0 || archive.Len()+len(part) > order.Length {
			return fmt.Errorf("%d bytes at %d are not a part of the pack", len(part), archive.Len())
		}
		archive.Write(part)
	}
	if sum := fmt.Sprintf("%x", sha256.Sum256(archive.Bytes())); sum != order.Pack {
		return errors.New("it is not what it should be: its digest differs")
	}
	r.files = make(files)
	_, err := pack.Each(&archive, r.files.create)
	return err
}
