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

// Write archives scenarios and the files they need.  Paths are kept relative to the folder that all have in
// common, so that what refers to another still finds it.  The same input gives the same bytes.
func Write(w io.Writer, scenarios, others []string) (*Manifest, error) {
	all := append(slices.Clone(scenarios), others...)
	base, err := commonFolder(all)
	if err != nil {
		return nil, err
	}
	manifest := &Manifest{Version: Version}
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
		// No times and no owners: they would make each archive another one.
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
