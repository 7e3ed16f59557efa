package scenario

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rdmarun/host/bounded"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// input is a file to read.
type input struct {
	path string
	// named tells that the user gave the file itself, not a directory around it.
	named bool
}

// collect lists the files of the paths: a file stands for itself, a directory for the scenarios below it,
// in the order of their names.  What cannot be read is reported.
func collect(locate Locate, paths []string, errors *diag.List) []input {
	var inputs []input
	seen := make(map[string]bool)
	add := func(path string, named bool) {
		if clean := filepath.Clean(path); !seen[clean] {
			seen[clean] = true
			inputs = append(inputs, input{path, named})
		}
	}
	for _, path := range paths {
		info, err := os.Stat(locate(path))
		if err != nil {
			unreadable(path, err, errors)
			continue
		}
		if !info.IsDir() {
			add(path, true)
			continue
		}
		for _, file := range walk(locate, path, errors) {
			add(file, false)
		}
	}
	return inputs
}

// walk lists the scenarios below a directory.
func walk(locate Locate, directory string, errors *diag.List) []string {
	var files []string
	from := locate(directory)
	err := filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		path := file
		if within, relErr := filepath.Rel(from, file); relErr == nil && from != directory {
			path = filepath.Join(directory, within)
		}
		switch {
		case err != nil:
			unreadable(path, err, errors)
			return nil
		case entry.IsDir() && path != directory && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || !isYAML(path) || !isFile(file) || !isScenario(file):
			return nil
		}
		files = append(files, path)
		return nil
	})
	if err != nil {
		unreadable(directory, err, errors)
	}
	slices.Sort(files)
	return files
}

func isYAML(path string) bool {
	extension := filepath.Ext(path)
	return extension == ".yaml" || extension == ".yml"
}

// isFile leaves out pipes, devices and links to directories.  What cannot be looked at stays: read will say
// why not.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err != nil || info.Mode().IsRegular()
}

// isScenario looks whether a file has the key that scenarios begin with; other YAML files in the same
// directories are none of our business.
func isScenario(path string) bool {
	head, err := bounded.Read(path, 64<<10)
	if err != nil {
		return true // read will say why not
	}
	return syntax.IsScenario(head)
}

// read returns the text of a file, or nil after saying why not.
func read(locate Locate, path string, report *diag.List) *diag.Source {
	text, err := bounded.Read(locate(path), syntax.MaxBytes+1)
	if err != nil {
		unreadable(path, err, report)
		return nil
	}
	return diag.NewSource(path, text)
}

func unreadable(path string, err error, report *diag.List) {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	d := report.Report(diag.Unreadable, diag.NewSource(path, nil).Start(), "the file cannot be read: %s", err)
	if errors.Is(err, fs.ErrNotExist) {
		d.WithHint("%s", similarFile(path))
	}
}

// similarFile looks for a file of nearly that name.
func similarFile(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "there is no directory " + filepath.Dir(path)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	if near := diag.Suggest(filepath.Base(path), names); near != "" {
		return "did you mean \"" + filepath.Join(filepath.Dir(path), near) + "\"?"
	}
	return ""
}
