// Command prose writes the texts of sources to files that vale checks. These are help, flags, errors and other
// sentences of Go, and comments of all languages.
//
//	go run ./internal/prose DIRECTORY SOURCE...
//
// Each source gets a file of its path below help, flags, errors, texts and comments.  Each text is on the line that it
// has in the source.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// kinds are the folders below the directory, one of a kind of text each.
var kinds = []string{"help", "flags", "errors", "texts", "comments"}

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

// foreign are folders with texts of others.
var foreign = map[string]bool{"node_modules": true, "target": true}

// isTestdata finds files of tests. Those that are no programs have texts which are bad on purpose.
var isTestdata = regexp.MustCompile(`(?:^|/)testdata/`)

// isProgram is true for the ends of names of programs.
var isProgram = map[string]bool{
	".go": true, ".c": true, ".h": true, ".js": true, ".rs": true, ".ts": true, ".wat": true,
}

// shebang begins a script of a shell.
var shebang = regexp.MustCompile(`^#!\S*[/ ](?:ba)?sh\n|^#!/usr/bin/env (?:ba)?sh\n`)

// extract writes the texts of all source files below the sources.
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
			if entry.IsDir() && foreign[entry.Name()] {
				return filepath.SkipDir
			}
			if !entry.Type().IsRegular() || isTestdata.MatchString(file) && !isProgram[filepath.Ext(file)] {
				return nil
			}
			text, err := os.ReadFile(file)
			if err != nil || generated.Match(text) {
				return err
			}
			found := texts{}
			switch kind := filepath.Ext(file); {
			case kind == ".go":
				if err := goTexts(found, file, text); err != nil {
					return err
				}
			case kind == ".c", kind == ".h":
				cComments(found, string(text), lexemes[".c"])
			case lexemes[kind] != nil:
				cComments(found, string(text), lexemes[kind])
			case kind == ".js":
				cComments(found, string(text), lexemes[".ts"])
			case kind == ".yaml", kind == ".yml", kind == ".sh", kind == ".mk", kind == ".py", shebang.Match(text):
				lineComments(found, string(text), hash)
			case kind == ".wat":
				lineComments(found, string(text), semicolons)
			default:
				return nil
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
		before := x[kind][line+i]
		if kind == "texts" && before != "" && strings.HasPrefix(each, "- ") {
			before, each = before+".", strings.ToUpper(each[2:3])+each[3:] // another text on the same line
		}
		x[kind][line+i] = strings.TrimSpace(before + " " + each)
	}
}

// isErrorCall is true for functions with texts that are messages for users.
var isErrorCall = map[string]bool{
	"Errorf": true, "New": true, "usageError": true, "WithHint": true, "withHint": true, "failure": true, "fail": true,
	"Wrong": true,
}

// badTexts is the test of the rules, with texts that they must find.
const badTexts = "internal/prose/prose_test.go"

// goTexts finds the texts of a Go file.
func goTexts(found texts, name string, text []byte) error {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	goComments(found, set, file)
	if filepath.ToSlash(name) == badTexts {
		return nil
	}
	seen := map[*ast.BasicLit]bool{}
	add := func(kind, prefix string, expression ast.Expr) {
		for i, literal := range literals(expression) {
			seen[literal] = true
			value, err := strconv.Unquote(literal.Value)
			if err != nil || i == 0 && !strings.Contains(value, " ") {
				return
			}
			if i == 0 {
				value = prefix + value
			}
			switch {
			case kind == "texts" && literal.Value[0] == '"':
				value = strings.ReplaceAll(value, "\n", " ") // which are no lines of the source
			case kind == "help":
				value = entry.ReplaceAllString(value, "- ")
			}
			found.add(kind, set.Position(literal.Pos()).Line, readable(value))
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.KeyValueExpr:
			switch key, _ := n.Key.(*ast.Ident); {
			case key == nil:
			case key.Name == "Short", key.Name == "Long":
				add("help", "", n.Value)
			case key.Name == "Example": // commands
				return false
			}
		case *ast.ValueSpec:
			switch name := n.Names[0].Name; {
			case len(n.Values) != 1:
			case strings.HasSuffix(name, "Long"):
				add("help", "", n.Values[0])
			case strings.HasSuffix(name, "Example"): // commands
				return false
			}
		case *ast.Field:
			if n.Tag == nil {
				return true
			}
			seen[n.Tag] = true
			if tag, err := strconv.Unquote(n.Tag.Value); err == nil {
				if doc := reflect.StructTag(tag).Get("doc"); doc != "" {
					found.add("help", set.Position(n.Tag.Pos()).Line, "- "+readable(doc))
				}
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
		case *ast.BinaryExpr:
			if parts := literals(n); len(parts) > 0 && !seen[parts[0]] && isSentence(parts) {
				add("texts", "- ", n)
			}
		case *ast.BasicLit: // after what it is a part of
			if n.Kind == token.STRING && !seen[n] && isSentence([]*ast.BasicLit{n}) {
				add("texts", "- ", n)
			}
		}
		return true
	})
	return nil
}

// sentence finds texts for readers among strings: four words in a row.
var sentence = regexp.MustCompile(`[A-Za-z]{2,}[,.:;]? [a-z]+[,.:;]? [a-z]+[,.:;]? [A-Za-z]+`)

func isSentence(parts []*ast.BasicLit) bool {
	text := ""
	for _, each := range parts {
		text += strings.Trim(each.Value, "\"`")
	}
	return sentence.MatchString(text)
}

// entry begins an entry of a list of words in a help text: two blanks, and its other lines have more.
var entry = regexp.MustCompile(`(?m)^  (?:\b|\B-)`)

// literals are the strings of which an expression joins a text.
func literals(expression ast.Expr) []*ast.BasicLit {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if e.Kind == token.STRING {
			return []*ast.BasicLit{e}
		}
	case *ast.BinaryExpr:
		return append(literals(e.X), literals(e.Y)...)
	case *ast.ParenExpr:
		return literals(e.X)
	}
	return nil
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
