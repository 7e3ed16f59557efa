// Package pack writes and reads archives of scenarios with everything they need: one file that runs the same on
// another machine.  An archive is a gzip-compressed tar; its first entry, manifest.json, has the hash of every other.
package pack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// version of the archive's form.
const version = 1

// manifestName is the first entry.
const manifestName = "manifest.json"

// Limits of what is unpacked: an archive is untrusted.
const (
	maxFiles = 10_000
	MaxBytes = 1 << 30
)

// Manifest is the table of contents of an archive.
type Manifest struct {
	Version int `json:"version"`
	// Scenarios are the paths to run, the others only belong to them.
	Scenarios []string `json:"scenarios"`
	Files     []File   `json:"files"`
}

// File is one file of an archive.
type File struct {
	Path   string `json:"path"` // slashes, relative to the archive
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Write archives scenarios and the files they need.  Paths are kept relative to the folder that all have in
// common, so that a file still finds those that it refers to.  The same input gives the same bytes.
func Write(w io.Writer, scenarios, others []string) (*Manifest, error) {
	all := append(slices.Clone(scenarios), others...)
	base, err := commonFolder(all)
	if err != nil {
		return nil, err
	}
	manifest := &Manifest{Version: version}
	content := make(map[string][]byte)
	for i, path := range all {
		name, err := inside(base, path)
		if err != nil {
			return nil, err
		}
		if i < len(scenarios) {
			manifest.Scenarios = append(manifest.Scenarios, name)
		}
		if _, twice := content[name]; twice {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("pack: %w", err)
		}
		content[name] = text
		sum := sha256.Sum256(text)
		manifest.Files = append(manifest.Files, File{name, int64(len(text)), hex.EncodeToString(sum[:])})
	}
	slices.SortFunc(manifest.Files, func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	return manifest, writeArchive(w, manifest, content)
}

func writeArchive(w io.Writer, manifest *Manifest, content map[string][]byte) error {
	head, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	compressed := gzip.NewWriter(w)
	archive := tar.NewWriter(compressed)
	add := func(name string, text []byte) error {
		// No times and no owners: with them no two archives would be the same.
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		_, err := io.Copy(archive, bytes.NewReader(text))
		return err
	}
	err = add(manifestName, head)
	for _, file := range manifest.Files {
		err = errors.Join(err, add(file.Path, content[file.Path]))
	}
	if err = errors.Join(err, archive.Close(), compressed.Close()); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

// commonFolder is the deepest folder that holds all files.
func commonFolder(paths []string) (string, error) {
	base := ""
	for i, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return "", err
		}
		if i == 0 {
			base = filepath.Dir(absolute)
		}
		for {
			name, err := filepath.Rel(base, absolute)
			if err == nil && filepath.IsLocal(name) {
				break
			}
			base = filepath.Dir(base)
		}
	}
	return base, nil
}

func inside(base, path string) (string, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	name, err := filepath.Rel(base, absolute)
	return filepath.ToSlash(name), err
}

// Extract unpacks an archive into a folder, which must exist, and returns the paths of its scenarios there. Entries
// that lead out of the folder, are not in the manifest, differ from it or are too much are errors. Entries unpacked
// until then stay, and the caller removes the folder.
func Extract(r io.Reader, folder string) ([]string, error) {
	root, err := os.OpenRoot(folder) // no name of an entry leads out of it
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	defer root.Close()
	manifest, err := Each(r, func(path string) (io.WriteCloser, error) {
		if err := root.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return nil, err
		}
		return root.Create(path)
	})
	if err != nil {
		return nil, err
	}
	scenarios := make([]string, len(manifest.Scenarios))
	for i, name := range manifest.Scenarios {
		scenarios[i] = filepath.Join(folder, name)
	}
	return scenarios, nil
}

// Each reads an archive, and writes each of its files to what create makes for its path, which is relative and leads
// nowhere out.  It closes that.  Errors are as those of Extract.
func Each(r io.Reader, create func(path string) (io.WriteCloser, error)) (*Manifest, error) {
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("unpack: not a pack of rdmarun: %w", err)
	}
	archive := tar.NewReader(io.LimitReader(compressed, MaxBytes+1<<20))
	manifest, err := readManifest(archive)
	if err != nil {
		return nil, err
	}
	for _, file := range manifest.Files {
		if err := extractFile(archive, create, file); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", file.Path, err)
		}
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unpack: it has more files than its manifest")
	}
	for _, name := range manifest.Scenarios {
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("unpack: %q leads out of the pack", name)
		}
	}
	return manifest, nil
}

func readManifest(archive *tar.Reader) (*Manifest, error) {
	header, err := archive.Next()
	if err != nil || header.Name != manifestName || header.Size > 16<<20 {
		return nil, fmt.Errorf("unpack: not a pack of rdmarun: it does not begin with %s", manifestName)
	}
	manifest := &Manifest{}
	if err := json.NewDecoder(archive).Decode(manifest); err != nil {
		return nil, fmt.Errorf("unpack: %s: %w", manifestName, err)
	}
	var size int64
	for _, file := range manifest.Files {
		if size += file.Size; file.Size < 0 || size > MaxBytes {
			return nil, fmt.Errorf("unpack: more than %d bytes", MaxBytes)
		}
	}
	switch {
	case manifest.Version != version:
		return nil, fmt.Errorf("unpack: a pack of version %d; this rdmarun reads %d", manifest.Version, version)
	case len(manifest.Files) > maxFiles:
		return nil, fmt.Errorf("unpack: more than %d files", maxFiles)
	case len(manifest.Scenarios) == 0:
		return nil, errors.New("unpack: it has no scenario")
	}
	return manifest, nil
}

func extractFile(archive *tar.Reader, create func(path string) (io.WriteCloser, error), file File) error {
	header, err := archive.Next()
	switch {
	case err != nil:
		return fmt.Errorf("the pack ends early: %w", err)
	case header.Name != file.Path || header.Typeflag != tar.TypeReg || header.Size != file.Size:
		return errors.New("it differs from the manifest")
	case !filepath.IsLocal(file.Path):
		return errors.New("it leads out of the pack")
	}
	out, err := create(file.Path)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(out, sum), archive)
	if err = errors.Join(err, out.Close()); err != nil {
		return err
	}
	if hex.EncodeToString(sum.Sum(nil)) != file.SHA256 {
		return errors.New("it was changed since it was packed: the hash differs")
	}
	return nil
}
