package standard_test

import (
	"slices"
	"strings"
	"testing"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/example"
	"rdmarun/host/scenario/standard"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// TestLibraries checks that each library is a valid file of fragments. Each fragment must have a sentence and an
// example that uses it.
func TestLibraries(t *testing.T) {
	names := standard.Names()
	if !slices.Contains(names, "std/cm") {
		t.Fatal(names)
	}
	for _, name := range names {
		text, found := standard.Text(name)
		if !found {
			t.Fatalf("%s has no text", name)
		}
		errors := &diag.List{}
		file := ast.Read(syntax.Parse(diag.NewSource(name, text), errors), verb.NewTable(), errors)
		if file == nil || !file.IsLibrary() {
			t.Fatalf("%s is no library", name)
		}
		compile.Compile(file, compile.Options{}, errors)
		if errors.Len()+errors.Warnings() > 0 {
			var shown strings.Builder
			t.Error(errors.Render(&shown, diag.Painter{}), &shown)
		}
		if standard.Doc(name) == "" {
			t.Errorf("%s says not what it is for", name)
		}
		for _, fragment := range standard.Fragments(name) {
			shown := example.Find(fragment.Name)
			if fragment.Doc == "" || !strings.Contains(fragment.Text, "\n    do:\n") ||
				strings.Count(fragment.Text, "\n  ") < 3 {
				t.Errorf("%s: %q\n%s", fragment.Name, fragment.Doc, fragment.Text)
			}
			if shown == nil || !strings.Contains(shown.Text, "use: "+fragment.Name) {
				t.Errorf("%s has no example that uses it", fragment.Name)
			}
		}
	}
	for _, name := range []string{"cm", "std/", "std/nothing", "std/../cm", "std/cm.yaml", "std/./cm", "./std/cm"} {
		if _, found := standard.Text(name); found {
			t.Errorf("%q is found", name)
		}
	}
}
