package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// program is what some main packages consist of: their packages of one module, type-checked from source without
// tests. Packages of other modules come from the compiler's export data.
type program struct {
	set      *token.FileSet
	checked  map[string]*types.Package
	files    map[string][]*ast.File
	info     *types.Info
	external types.Importer
	exports  map[string]string
}

// listed is a package as go list describes it.
type listed struct {
	ImportPath      string
	Dir             string
	Export          string
	CompiledGoFiles []string // those with cgo as cgo has rewritten them
	Imports         []string
	Module          *struct{ Main bool }
}

// loadProgram type-checks the packages that patterns name in the module at directory, and their dependencies. Only
// packages of other modules are compiled: those of this one change often, and may take a minute.
func loadProgram(t *testing.T, directory string, patterns ...string) *program {
	t.Helper()
	p := &program{
		set:     token.NewFileSet(),
		checked: map[string]*types.Package{},
		files:   map[string][]*ast.File{},
		exports: map[string]string{},
		info: &types.Info{
			Defs:      map[*ast.Ident]types.Object{},
			Uses:      map[*ast.Ident]types.Object{},
			Types:     map[ast.Expr]types.TypeAndValue{},
			Instances: map[*ast.Ident]types.Instance{},
		},
	}
	p.external = importer.ForCompiler(p.set, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(p.exports[path])
	})
	ours := slices.DeleteFunc(goList(t, directory, append([]string{
		"-deps", "-compiled", "-json=ImportPath,Dir,CompiledGoFiles,Imports,Module",
	}, patterns...)...), func(each listed) bool { return each.Module == nil || !each.Module.Main })
	others := map[string]bool{}
	for _, each := range ours {
		for _, path := range each.Imports {
			others[path] = path != "C" && path != "unsafe"
		}
	}
	for _, each := range ours {
		delete(others, each.ImportPath)
	}
	maps.DeleteFunc(others, func(_ string, isPackage bool) bool { return !isPackage })
	wanted := append([]string{"-export", "-json=ImportPath,Export"}, slices.Sorted(maps.Keys(others))...)
	for _, each := range goList(t, directory, wanted...) {
		p.exports[each.ImportPath] = each.Export
	}
	for _, each := range ours {
		p.check(t, each) // go list has listed what it imports before it
	}
	return p
}

// goList runs go list with the flags by which make build has filled the build cache.
func goList(t *testing.T, directory string, arguments ...string) (packages []listed) {
	t.Helper()
	command := exec.Command("go", append([]string{"list", "-trimpath"}, arguments...)...)
	command.Dir = directory
	var messages bytes.Buffer
	command.Stderr = &messages
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &messages)
	}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var each listed
		if err := decoder.Decode(&each); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, each)
	}
}

func (p *program) check(t *testing.T, each listed) {
	t.Helper()
	for _, name := range each.CompiledGoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(each.Dir, name)
		}
		file, err := parser.ParseFile(p.set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files[each.ImportPath] = append(p.files[each.ImportPath], file)
	}
	config := types.Config{Importer: p, FakeImportC: true}
	checked, err := config.Check(each.ImportPath, p.set, p.files[each.ImportPath], p.info)
	if err != nil {
		t.Fatal(err)
	}
	p.checked[each.ImportPath] = checked
}

// Import implements types.Importer.
func (p *program) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if ours := p.checked[path]; ours != nil {
		return ours, nil
	}
	return p.external.Import(path)
}

// exported are the exported functions, methods, types, variables and constants of the module's packages.
func (p *program) exported() map[types.Object]bool {
	found := map[types.Object]bool{}
	for _, object := range p.info.Defs {
		if object == nil || !object.Exported() {
			continue
		}
		switch object := object.(type) {
		case *types.Func:
			found[object] = true
		case *types.TypeName, *types.Var, *types.Const:
			if object.Parent() == object.Pkg().Scope() {
				found[object] = true
			}
		}
	}
	return found
}

// uses are the objects by the declarations that name them. A declaration that is not in exported is nil: whether
// something uses it is a question for staticcheck.
func (p *program) uses(exported map[types.Object]bool) map[types.Object][]types.Object {
	uses := map[types.Object][]types.Object{}
	within := func(name *ast.Ident, node ast.Node) {
		var user types.Object
		if object := p.info.Defs[name]; exported[object] {
			user = object
		}
		ast.Inspect(node, func(node ast.Node) bool {
			if name, ok := node.(*ast.Ident); ok {
				if used := origin(p.info.Uses[name]); exported[used] {
					uses[user] = append(uses[user], used)
				}
			}
			return true
		})
	}
	for _, files := range p.files {
		for _, file := range files {
			for _, declaration := range file.Decls {
				switch declaration := declaration.(type) {
				case *ast.FuncDecl:
					within(declaration.Name, declaration.Type) // a method alone is no use of its receiver
					if declaration.Body != nil {
						within(declaration.Name, declaration.Body)
					}
				case *ast.GenDecl:
					for _, spec := range declaration.Specs {
						switch spec := spec.(type) {
						case *ast.TypeSpec:
							within(spec.Name, spec)
						case *ast.ValueSpec:
							within(spec.Names[0], spec)
						}
					}
				}
			}
		}
	}
	return uses
}

// origin is the declared object of one of an instantiated generic type or function.
func origin(object types.Object) types.Object {
	switch object := object.(type) {
	case *types.Func:
		return object.Origin()
	case *types.Var:
		return object.Origin()
	}
	return object
}

// interfaces are all interfaces that the program knows, by the names of their methods.
func (p *program) interfaces() map[string][]*types.Interface {
	found := map[string][]*types.Interface{}
	add := func(t types.Type) {
		if each, ok := t.Underlying().(*types.Interface); ok && each.IsMethodSet() {
			for method := range each.Methods() {
				found[method.Name()] = append(found[method.Name()], each)
			}
		}
	}
	failure := types.Universe.Lookup("error").Type()
	add(failure)
	for _, result := range []types.Type{failure, types.NewSlice(failure)} { // package errors has these within functions
		add(withMethod("Unwrap", nil, result))
	}
	add(withMethod("Is", failure, types.Typ[types.Bool]))
	seen := map[*types.Package]bool{}
	var scan func(*types.Package)
	scan = func(each *types.Package) {
		if seen[each] {
			return
		}
		seen[each] = true
		for _, name := range each.Scope().Names() {
			if object, ok := each.Scope().Lookup(name).(*types.TypeName); ok {
				add(object.Type())
			}
		}
		for _, imported := range each.Imports() {
			scan(imported)
		}
	}
	for _, each := range p.checked {
		scan(each)
	}
	for _, expression := range p.info.Types {
		if expression.IsType() {
			if _, ok := expression.Type.(*types.Interface); ok {
				add(expression.Type)
			}
		}
	}
	return found
}

// withMethod is an interface of one method with at most one parameter.
func withMethod(name string, parameter, result types.Type) types.Type {
	variable := func(t types.Type) *types.Tuple {
		if t == nil {
			return nil
		}
		return types.NewTuple(types.NewParam(token.NoPos, nil, "", t))
	}
	signature := types.NewSignatureType(nil, nil, nil, variable(parameter), variable(result), false)
	method := types.NewFunc(token.NoPos, nil, name, signature)
	return types.NewInterfaceType([]*types.Func{method}, nil).Complete()
}

// implementing are the methods by which types of the module implement an interface.
func (p *program) implementing() []types.Object {
	var found []types.Object
	interfaces := p.interfaces()
	for _, object := range p.info.Defs {
		name, ok := object.(*types.TypeName)
		if !ok || types.IsInterface(name.Type()) {
			continue
		}
		pointer := types.NewPointer(name.Type())
		for method := range types.NewMethodSet(pointer).Methods() {
			for _, each := range interfaces[method.Obj().Name()] {
				if types.Implements(pointer, each) {
					found = append(found, origin(method.Obj()))
					break
				}
			}
		}
	}
	return found
}

// unused are the exported names that no code of the program uses, sorted.
func (p *program) unused() []string {
	exported := p.exported()
	uses := p.uses(exported)
	next := append(uses[nil], p.implementing()...)
	used := map[types.Object]bool{}
	for len(next) > 0 {
		object := next[0]
		next = next[1:]
		if !used[object] {
			used[object] = true
			next = append(next, uses[object]...)
		}
	}
	var names []string
	for object := range exported {
		if !used[object] {
			names = append(names, fullName(object))
		}
	}
	return slices.Sorted(slices.Values(names))
}

// fullName is PACKAGE.NAME or PACKAGE.TYPE.NAME, with the path of the package within its module.
func fullName(object types.Object) string {
	name := object.Name()
	if function, ok := object.(*types.Func); ok {
		if receiver := function.Signature().Recv(); receiver != nil {
			holder := receiver.Type()
			if pointer, ok := holder.(*types.Pointer); ok {
				holder = pointer.Elem()
			}
			if named, ok := holder.(*types.Named); ok {
				name = named.Obj().Name() + "." + name
			}
		}
	}
	_, folder, _ := strings.Cut(object.Pkg().Path(), "/")
	return folder + "." + name
}

// excused are exported names that code uses in a way which types do not show, with the reason.
var excused = map[string]string{}

// What only tests use is no API: it is read, documented and maintained for nothing. A name that only its own package
// uses needs no upper-case letter, by which readers look for users elsewhere.
func TestExportedNamesAreUsed(t *testing.T) {
	program := loadProgram(t, root, programs...)
	missing := maps.Clone(excused)
	for _, name := range program.unused() {
		switch {
		case excused[name] != "":
			delete(missing, name)
		case inTemplates(t, name):
		case !forTests(name):
			t.Errorf("%s: only tests use it, or nothing; remove it, or move it to the tests", name)
		}
	}
	for name := range missing {
		t.Errorf("%s is excused, and used or gone", name)
	}
	named := namedInTests(t)
	for _, name := range program.onlyAtHome() {
		if forTests(name) || inTemplates(t, name) {
			continue
		}
		folder, word, _ := cutLast(name, ".")
		if at := strings.LastIndex(folder, "."); at >= 0 {
			folder = folder[:at]
		}
		if !slices.ContainsFunc(named[word], func(user string) bool { return user != folder }) {
			t.Errorf("%s: only its package uses it; unexport it", name)
		}
	}
}

// forTests reports whether a name is of a package for tests and the benchmark.
func forTests(name string) bool {
	return within(name, "internal") || strings.HasPrefix(name, "host/bus/bustest.")
}

// inTemplates reports whether a template of the page uses a method.
func inTemplates(t *testing.T, name string) bool {
	t.Helper()
	const html = "host/output/html"
	if !strings.HasPrefix(name, html+".") {
		return false
	}
	_, method, _ := cutLast(name, ".")
	word := regexp.MustCompile(`\.` + method + `\b`)
	templates, err := filepath.Glob(filepath.Join(root, html, "page", "*.html"))
	if err != nil || len(templates) == 0 {
		t.Fatalf("templates: %v, %v", templates, err)
	}
	return slices.ContainsFunc(templates, func(path string) bool {
		text, err := os.ReadFile(path)
		return err == nil && word.Match(text)
	})
}

// programs are the main packages of the project, guests and templates for users aside.
var programs = []string{"./cmd/rdmarun", "./host/schema/generate", "./hostfuncs/gen", "./internal/bench/..."}

// seeded is a module with names that are used, and names that only tests use or nothing.
var seeded = map[string]string{
	"go.mod": "module seeded\n\ngo 1.25\n",
	"main.go": `package main

import (
	"fmt"

	"seeded/a"
	"seeded/b"
)

func main() { fmt.Println(a.Used(), a.Constant, a.Box[int]{}.Get(), a.Text{}, b.Make()) }
`,
	"a/a.go": `package a

import "errors"

const (
	Constant = 1
	Unused   = 2
)

type (
	Text      struct{}
	Box[T any] struct{ value T }
	Lonely    struct{}
)

var Variable = errors.New("a variable")

func (Text) String() string { return "text" }
func (Text) Forgotten()     { Forgotten() }
func (Lonely) Error() string { return "" }
func (b Box[T]) Get() T     { return b.value }
func (b Box[T]) Set(v T)    { b.value = v }
func Used() string          { return "used" }
func Tested() int           { return Constant }
func Forgotten()            { Forgotten() }
`,
	"a/a_test.go": `package a

var _ = Tested() + Unused
`,
	"b/b.go": `package b

type (
	Shown struct{ Size int }
	Home  struct{}
	Asked interface{ Ask() }
	State int
)

const (
	Begun State = iota
	Ended
)

type Row struct{}

func structOf[T any]() *T { return new(T) }

func Make() *Shown { structOf[Row](); return helper(Home{}) }
func helper(Home) *Shown { return Inner() }
func Inner() *Shown { return &Shown{} }
func (*Shown) Grow() {}
func (s *Shown) Ask() { s.Grow() }

var _ Asked = Make()
`,
}

func TestUnusedNamesAreFound(t *testing.T) {
	directory := t.TempDir()
	for name, text := range seeded {
		path := filepath.Join(directory, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	seededProgram := loadProgram(t, directory, "./...")
	want := []string{
		"a.Box.Set", "a.Forgotten", "a.Lonely", "a.Tested", "a.Text.Forgotten", "a.Unused", "a.Variable",
		"b.Asked.Ask", "b.Begun", "b.Ended", "b.State",
	}
	if got := seededProgram.unused(); !slices.Equal(got, want) {
		t.Errorf("unused are %q, want %q", got, want)
	}
	want = []string{
		"a.Box.Set", "a.Forgotten", "a.Lonely", "a.Tested", "a.Text.Forgotten", "a.Unused", "a.Variable", "b.Asked",
		"b.Home", "b.Inner", "b.Shown.Grow", "b.State",
	}
	if got := seededProgram.onlyAtHome(); !slices.Equal(got, want) {
		t.Errorf("only their packages use %q, want %q", got, want)
	}
}
