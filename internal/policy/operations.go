package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"strings"
)

// Operations lists the exported functions ("func.Open") and methods ("QP.Modify") of the package in a directory,
// without those that parse and print names, and those of errors.  What the core can do has to be a verb of scenarios
// and a function of guests: the tests of both tables ask here what there is.
func Operations(directory string) ([]string, error) {
	packages, err := parser.ParseDir(token.NewFileSet(), directory, func(info fs.FileInfo) bool {
		return !strings.HasSuffix(info.Name(), "_test.go")
	}, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	if len(packages) != 1 {
		return nil, fmt.Errorf("%s: %d packages", directory, len(packages))
	}
	var names []string
	for _, one := range packages {
		for _, file := range one.Files {
			for _, declaration := range file.Decls {
				if name := operation(declaration); name != "" {
					names = append(names, name)
				}
			}
		}
	}
	return names, nil
}

// operation is the name of a declaration that is one, else "".
func operation(declaration ast.Decl) string {
	function, ok := declaration.(*ast.FuncDecl)
	if !ok || !function.Name.IsExported() {
		return ""
	}
	name := function.Name.Name
	if name == "String" || name == "Error" || name == "Unwrap" || strings.HasPrefix(name, "Parse") {
		return ""
	}
	kind := receiver(function)
	switch {
	case kind == "":
		return "func." + name
	case ast.IsExported(kind):
		return kind + "." + name
	}
	return ""
}

func receiver(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return ""
	}
	kind := function.Recv.List[0].Type
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind = pointer.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name
	}
	return ""
}
