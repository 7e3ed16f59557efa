package compile_test

import (
	"os"
	"path/filepath"
	"testing"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
	"rdmarun/internal/corpus"
)

// compileText takes a text through all stages.
func compileText(text string, params map[string]string) (*compile.Scenario, *diag.List) {
	errors := &diag.List{}
	root := syntax.Parse(diag.NewSource("t.yaml", []byte(text)), errors)
	if root == nil {
		return nil, errors
	}
	file := ast.Read(root, verb.NewTable(), errors)
	if file == nil {
		return nil, errors
	}
	return compile.Compile(file, compile.Options{Params: params}, errors), errors
}

// FuzzCompile looks for panics of the checker on what parses.
func FuzzCompile(f *testing.F) {
	for _, each := range corpus.Open(f, "../testdata/bad").Cases {
		f.Add(string(each.Text))
	}
	for _, pattern := range []string{
		"../testdata/run/*.yaml", "../../../scenarios/*.yaml", "../../../scenarios/*/*.yaml",
	} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(text))
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		scenario, errors := compileText(text, nil)
		if scenario == nil && errors.Len() == 0 {
			t.Error("neither a program nor an error")
		}
		for _, d := range errors.Sorted() {
			if d.Span.Line < 1 || d.Span.Column < 1 {
				t.Errorf("no place: %v", d)
			}
		}
	})
}
