package policy

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
)

// Operations lists the exported functions ("func.Open") and methods ("QP.Modify") of the package in a directory. Those
// that parse and print names, and those of errors, are left out. What the core can do must be a verb of scenarios and
// a function of guests. The tests of both tables ask here what there is.
func Operations(directory string) ([]string, error) {
	paths, err := filepath.Glob(filepath.Join(directory, "*.go"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			if name := operation(declaration); name != "" {
				names = append(names, name)
			}
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s: no package with exported functions", directory)
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
