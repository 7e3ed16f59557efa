package scenario

import (
	"path/filepath"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// Needs lists the files that a scenario needs beside itself: what it imports, and its guests' modules.
func (s Scenario) Needs() []string {
	seen := map[string]bool{s.Path: true}
	files := imports(s.Path, seen)
	for _, role := range s.Program.Roles {
		if role.Guest != nil && !seen[role.Guest.Module] {
			seen[role.Guest.Module] = true
			files = append(files, role.Guest.Module)
		}
	}
	return files
}

// imports follows the key `imports` of a file that was checked already.
func imports(path string, seen map[string]bool) []string {
	ignored := &diag.List{}
	source := read(path, ignored)
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
		if name.Kind != syntax.Scalar || seen[file] {
			continue
		}
		seen[file] = true
		files = append(append(files, file), imports(file, seen)...)
	}
	return files
}
