package scenario

import (
	"path/filepath"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/standard"
	"rdmarun/host/scenario/syntax"
)

// Located is the file of the scenario.
func (s Scenario) Located() string { return s.locate(s.Path) }

// Needs lists the files that a scenario needs beside itself: what it imports, and its guests' modules.
func (s Scenario) Needs() []string {
	seen := map[string]bool{s.Path: true}
	var files []string
	for _, path := range imports(s.locate, s.Path, seen) {
		files = append(files, s.locate(path))
	}
	for _, role := range s.Program.Roles {
		if role.Guest != nil && !seen[role.Guest.Module] {
			seen[role.Guest.Module] = true
			files = append(files, role.Guest.Module)
		}
	}
	return files
}

// imports follows the key `imports` of a file that was checked already.
func imports(locate Locate, path string, seen map[string]bool) []string {
	ignored := &diag.List{}
	source := read(locate, path, ignored)
	if source == nil {
		return nil
	}
	root := syntax.Parse(source, ignored)
	if root == nil {
		return nil
	}
	list := root.Get("imports")
	if list == nil {
		return nil
	}
	names := list.Items
	for _, pair := range list.Pairs {
		names = append(names, pair.Value)
	}
	var files []string
	for _, name := range names {
		file := filepath.Join(filepath.Dir(path), name.Value)
		if name.Kind != syntax.Scalar || seen[file] || standard.Is(name.Value) {
			continue
		}
		seen[file] = true
		files = append(append(files, file), imports(locate, file, seen)...)
	}
	return files
}
