package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rdmarun/sdk"
)

// project is a guest of one's own, as new writes it: a folder of files, and the SDK in another inside.
type project struct {
	language string // of the SDK
	folder   string // of the templates, whose files have their own names but for:
	renamed  map[string]string
}

// sdkFolder is where a project has its SDK.
const sdkFolder = "rdma"

// projects are the templates that are projects.
func projects() map[string]project {
	return map[string]project{
		// A file go.mod would make a module of the templates' own folder, which could not be embedded.
		"guest-go": {language: "go", folder: "guest-go", renamed: map[string]string{"go.mod.text": "go.mod"}},
		"guest-c":  {language: "c", folder: "guest-c", renamed: map[string]string{"guest.c": "NAME.c"}},
	}
}

// newProject writes a project to a folder of its own.
func (a *app) newProject(directory string, p project) error {
	directory = filepath.Clean(directory)
	name := filepath.Base(directory)
	if err := checkName(name, "guest"); err != nil {
		return err
	}
	files, err := p.files(name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(directory), 0o755); err != nil {
		return err
	}
	if err := os.Mkdir(directory, 0o755); errors.Is(err, fs.ErrExist) {
		return existsAlready(directory)
	} else if err != nil {
		return err
	}
	for file, text := range files {
		if err := writeNew(filepath.Join(directory, file), text); err != nil {
			return err
		}
	}
	if err := sdk.Write(p.language, filepath.Join(directory, sdkFolder)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: try\n  make -C %s\n  rdmarun run %s\n", directory, directory, filepath.Join(directory, name+".yaml"))
	return err
}

// files are the project's own files by name, for a guest of that name.
func (p project) files(name string) (map[string]string, error) {
	entries, err := templateFiles.ReadDir("templates/" + p.folder)
	if err != nil {
		return nil, err
	}
	paths := map[string]string{"NAME.yaml": "templates/guest-project.yaml"}
	for _, entry := range entries {
		file := entry.Name()
		if other, ok := p.renamed[file]; ok {
			file = other
		}
		paths[file] = "templates/" + p.folder + "/" + entry.Name()
	}
	files := map[string]string{".gitignore": "/" + name + ".wasm\n"}
	for file, path := range paths {
		text, err := templateFiles.ReadFile(path)
		if err != nil {
			return nil, err
		}
		files[strings.ReplaceAll(file, "NAME", name)] = strings.ReplaceAll(string(text), "NAME", name)
	}
	return files, nil
}
