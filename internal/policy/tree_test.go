package policy

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// root is the project's folder seen from this package.
const root = "../.."

// module is the path of the project's module; imports of its packages begin with it.
const module = "rdmarun"

// sourceFiles lists the project's files, slash-separated and relative to root, with what is built or
// belongs to git left out.
func sourceFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if path == ".git" || path == "bin" || path == "build" {
				return fs.SkipDir
			}
			return nil
		}
		if entry.Type().IsRegular() {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 10 {
		t.Fatalf("%d files under %s: this is not the project's tree", len(files), root)
	}
	return files
}

func readSource(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// goFile is one parsed Go file of the project.
type goFile struct {
	path   string // relative to root
	syntax *ast.File
	set    *token.FileSet
}

func (f goFile) directory() string {
	directory, _, found := cutLast(f.path, "/")
	if !found {
		return "."
	}
	return directory
}

func (f goFile) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

// imports are the import paths of the file, each with its position for a message.
func (f goFile) imports() map[string]token.Position {
	paths := map[string]token.Position{}
	for _, spec := range f.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue // the parser accepted it, so it is a string
		}
		position := f.set.Position(spec.Pos())
		position.Filename = f.path
		paths[path] = position
	}
	return paths
}

// goFiles parses every Go file of the project, tests included, testdata not.
func goFiles(t *testing.T) []goFile {
	t.Helper()
	var files []goFile
	set := token.NewFileSet()
	for _, path := range sourceFiles(t) {
		if !strings.HasSuffix(path, ".go") || strings.Contains(path, "testdata/") {
			continue
		}
		syntax, err := parser.ParseFile(set, filepath.Join(root, path), nil, parser.ParseComments)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		files = append(files, goFile{path: path, syntax: syntax, set: set})
	}
	return files
}

func cutLast(s, separator string) (before, after string, found bool) {
	if i := strings.LastIndex(s, separator); i >= 0 {
		return s[:i], s[i+len(separator):], true
	}
	return s, "", false
}
