package policy

import (
	"go/ast"
	"strings"
	"testing"
)

func TestEveryPackageHasADocComment(t *testing.T) {
	documented := map[string]bool{}
	for _, file := range goFiles(t) {
		if file.isTest() {
			continue
		}
		directory, name := file.directory(), file.syntax.Name.Name
		doc := file.syntax.Doc.Text()
		wanted := "Package " + name + " "
		if name == "main" {
			wanted = "Command "
		}
		documented[directory] = documented[directory] || strings.HasPrefix(doc, wanted)
	}
	for directory, ok := range documented {
		if !ok {
			t.Errorf(`%s: no file begins with "// Package ..." (or "// Command ..." for a program)`, directory)
		}
	}
}

// An init function runs in every program that imports the package, in an order that the source does not show.
func TestNoInitFunctions(t *testing.T) {
	for _, file := range goFiles(t) {
		for _, declaration := range file.syntax.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if ok && function.Recv == nil && function.Name.Name == "init" {
				t.Errorf("%s:%d: an init function; construct the value where it is used",
					file.path, file.set.Position(function.Pos()).Line)
			}
		}
	}
}
