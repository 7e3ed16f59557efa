package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"rdmarun/hostfuncs/model"
)

// goDeclarations are the Go SDK's functions by name, "EP.Connect" for a method, with the names that each one uses.
type goDeclarations map[string]map[string]bool

// readGo reads what is written by hand of the Go SDK.
func readGo(folder string) (goDeclarations, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	declared := goDeclarations{}
	for _, path := range paths {
		if strings.HasSuffix(path, ".gen.go") || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			uses := map[string]bool{}
			ast.Inspect(function, func(n ast.Node) bool {
				if name, ok := n.(*ast.Ident); ok {
					uses[name.Name] = true
				}
				return true
			})
			declared[goFunctionName(function)] = uses
		}
	}
	return declared, nil
}

func goFunctionName(function *ast.FuncDecl) string {
	if function.Recv == nil {
		return function.Name.Name
	}
	of := function.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	return of.(*ast.Ident).Name + "." + function.Name.Name
}

// callers are the exported functions that use a name, also through functions that are not exported.
func (d goDeclarations) callers(name string) []string {
	var found []string
	seen := map[string]bool{}
	for next := []string{name}; len(next) > 0; next = next[1:] {
		for _, caller := range slices.Sorted(maps.Keys(d)) {
			if seen[caller] || !d[caller][next[0]] {
				continue
			}
			seen[caller] = true
			if base := caller[strings.LastIndexByte(caller, '.')+1:]; ast.IsExported(base) {
				found = append(found, caller)
			} else {
				next = append(next, base)
			}
		}
	}
	slices.Sort(found)
	return found
}

// goNames is the page of the Go SDK's documentation that has all functions of the ABI; one that no exported function
// calls is an error.
func goNames(m *model.Model, declared goDeclarations) ([]byte, error) {
	// Names that the exported functions do not show.
	special := map[string]string{"error_text": "Error", "yield": "Yield, which calls sched_yield",
		"ep_qp": "in EP.QP", "ep_send_cq": "in EP.SendCQ", "ep_recv_cq": "in EP.RecvCQ"}
	var out bytes.Buffer
	out.WriteString(
		goHeader + "// # Functions\n//\n// Which functions of this package call which host function. The name of " +
			"that is " +
			"that of the man page without rdma_ or ibv_.\n//\n",
	)
	for _, f := range m.Functions {
		text, ok := special[f.Name]
		if !ok {
			text = strings.Join(declared.callers(importName(f.Name)), ", ")
		}
		if text == "" {
			return nil, fmt.Errorf("%s: no exported function of sdk/rdma calls it; write one there", f.Name)
		}
		fmt.Fprintf(&out, "//\t%-21s %s\n", f.Name, text)
	}
	out.WriteString("package rdma\n")
	return out.Bytes(), nil
}
