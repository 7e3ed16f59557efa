// Command prose writes the texts of the Go sources that users read to files that vale checks: help, flags and errors.
//
//	go run ./internal/prose DIRECTORY SOURCE...
//
// Each source gets a file of its path below help, flags and errors, with each text on the line that it has in the
// source.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// kinds are the folders below the directory, one of a kind of text each.
var kinds = []string{"help", "flags", "errors"}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: prose DIRECTORY SOURCE...")
		os.Exit(2)
	}
	if err := extract(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

// extract writes the texts of all Go files below the sources, tests left out.
func extract(dir string, sources []string) error {
	for _, kind := range kinds {
		if err := os.RemoveAll(filepath.Join(dir, kind)); err != nil {
			return err
		}
	}
	for _, source := range sources {
		err := filepath.WalkDir(source, func(file string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if entry.IsDir() && entry.Name() == "testdata" {
				return filepath.SkipDir
			}
			if entry.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			found, err := textsOf(file, text)
			if err != nil {
				return err
			}
			return write(dir, file, found)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// texts has, of each kind, the text of each line.
type texts map[string]map[int]string

func (x texts) add(kind string, line int, text string) {
	if x[kind] == nil {
		x[kind] = map[int]string{}
	}
	for i, each := range strings.Split(text, "\n") {
		x[kind][line+i] = strings.TrimSpace(x[kind][line+i] + " " + each)
	}
}

// isErrorCall tells of functions whose texts are messages for users.
var isErrorCall = map[string]bool{
	"Errorf": true, "New": true, "usageError": true, "WithHint": true, "withHint": true, "failure": true, "fail": true,
	"Wrong": true,
}

// textsOf finds the texts of a Go file.
func textsOf(name string, text []byte) (texts, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	found := texts{}
	add := func(kind, prefix string, expression ast.Expr) {
		literal, ok := expression.(*ast.BasicLit)
		if !ok || literal.Kind != token.STRING {
			return
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil || !strings.Contains(value, " ") {
			return
		}
		found.add(kind, set.Position(literal.Pos()).Line, prefix+readable(value))
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && (key.Name == "Short" || key.Name == "Long") {
				add("help", "", n.Value)
			}
		case *ast.CallExpr:
			called := ""
			switch f := n.Fun.(type) {
			case *ast.Ident:
				called = f.Name
			case *ast.SelectorExpr:
				called = f.Sel.Name
			}
			switch {
			case isErrorCall[called]:
				for _, argument := range n.Args {
					add("errors", "- ", argument)
				}
			case len(n.Args) > 2 && (strings.HasSuffix(called, "Var") || strings.HasSuffix(called, "VarP")):
				add("flags", "- ", n.Args[len(n.Args)-1])
			}
		}
		return true
	})
	return found, nil
}

// verbs are those of fmt, which a reader sees as a word or a number.
var verbs = regexp.MustCompile(`%[-+# 0]*[\d*]*(?:\.[\d*]+)?(?:\[\d+\])?[a-zA-Z]`)

// readable is a text as a user sees it, so that it is prose for vale.
func readable(text string) string {
	return strings.NewReplacer("<", "&lt;", "*", `\*`, "_", `\_`).Replace(verbs.ReplaceAllString(text, "X"))
}

// write writes the texts of a source to a file of its path for each kind.
func write(dir, source string, found texts) error {
	for kind, lines := range found {
		last := 0
		for line := range lines {
			last = max(last, line)
		}
		var out strings.Builder
		for line := 1; line <= last; line++ {
			out.WriteString(lines[line] + "\n")
		}
		file := filepath.Join(dir, kind, source+".md")
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}
