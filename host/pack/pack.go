package pack

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Extract unpacks an archive into a folder, which must exist, and returns the paths of its scenarios there.
// Entries that lead out of the folder, are not in the manifest, differ from it or are too much are errors;
// what was unpacked until then stays, and the caller removes the folder.
func Extract(r io.Reader, folder string) ([]string, error) {
	compressed, err := gzip.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("unpack: not a pack of rdmarun: %w", err)
	}
	archive := tar.NewReader(io.LimitReader(compressed, MaxBytes+1<<20))
	manifest, err := readManifest(archive)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder) // nothing leads out of it, whatever an entry is called
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	defer root.Close()
	for _, file := range manifest.Files {
		if err := extractFile(archive, root, file); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", file.Path, err)
		}
	}
	if _, err := archive.Next(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unpack: there is more in it than its manifest says")
	}
	scenarios := make([]string, len(manifest.Scenarios))
	for i, name := range manifest.Scenarios {
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("unpack: %q leads out of the pack", name)
		}
		scenarios[i] = filepath.Join(folder, name)
	}
	return scenarios, nil
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
	case manifest.Version != Version:
		return nil, fmt.Errorf("unpack: a pack of version %d; this rdmarun reads %d", manifest.Version, Version)
	case len(manifest.Files) > MaxFiles:
		return nil, fmt.Errorf("unpack: more than %d files", MaxFiles)
	case len(manifest.Scenarios) == 0:
		return nil, errors.New("unpack: it has no scenario")
	}
	return manifest, nil
}

func extractFile(archive *tar.Reader, root *os.Root, file File) error {
	header, err := archive.Next()
	switch {
	case err != nil:
		return fmt.Errorf("the pack ends early: %w", err)
	case header.Name != file.Path || header.Typeflag != tar.TypeReg || header.Size != file.Size:
		return errors.New("it differs from the manifest")
	case !filepath.IsLocal(file.Path):
		return errors.New("it leads out of the pack")
	}
	if err := root.MkdirAll(filepath.Dir(file.Path), 0o755); err != nil {
		return err
	}
	out, err := root.Create(file.Path)
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
