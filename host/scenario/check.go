// Package scenario reads, checks and runs scenario files.
//
// A file passes through stages, each a package below this one. Bytes become nodes (syntax), nodes a file (ast), and a
// file a scenario (compile) with its verbs (verb) and expressions (expression). A scenario runs (exec) on a testbed
// (testbed) and leaves records (host/record), which outputs read (host/output).
package scenario

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"rdmarun/host/bounded"
	"rdmarun/host/guest"
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Scenario is a file that was checked.
type Scenario struct {
	Path     string
	Compiled *compile.Scenario
	// Library means that the file has only fragments.
	Library bool
	// Named means that the user gave the file itself, not a directory around it.
	Named bool

	locate Locate
}

// Locate finds the file of a path, for paths that lead into an archive; ids and messages have the path.
type Locate func(path string) string

func inPlace(path string) string { return path }

// Checked is the result of Check.
type Checked struct {
	Scenarios []Scenario
	// Errors is what is wrong with the files; with any of it nothing must run.
	Errors *diag.List
	// ParamErrors is what is wrong with the parameters of the command line.
	ParamErrors []*compile.ParamError
	// Files is how many files were read.
	Files int
}

// Params are values of parameters, by name, as text.
type Params struct {
	// Given were asked for: a name that no file has is an error.
	Given map[string]string
	// Environment gives way to Given, and may hold names for other files.
	Environment map[string]string
	// Hosts is how many hosts of a lab a role is placed on; nil: there is no lab.
	Hosts func(role string) int
	// ParseScript finds what is no script; nil leaves that to the run.
	ParseScript func(*guest.Script) error
}

// of are the values that count for a set of files.
func (p Params) of(files []*ast.File) map[string]string {
	merged := make(map[string]string)
	for _, file := range files {
		for _, param := range file.Params {
			if value, ok := p.Environment[param.Name.Value]; ok {
				merged[param.Name.Value] = value
			}
		}
	}
	maps.Copy(merged, p.Given)
	return merged
}

// Check reads and checks files, and the scenarios in directories, with the given values of parameters.  It
// touches no device and opens no socket.
func Check(paths []string, given Params) *Checked {
	return check(context.Background(), inPlace, paths, given)
}

// CheckIn is Check for paths with files elsewhere, until ctx ends. Then its error is the cause, and checks of files
// that are under way end by themselves.
func CheckIn(ctx context.Context, locate Locate, paths []string, given Params) (*Checked, error) {
	done := make(chan *Checked, 1)
	go func() { done <- check(ctx, locate, paths, given) }()
	select {
	case checked := <-done:
		return checked, context.Cause(ctx) // with which files are left out
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// maxErrors is how many errors of a file are looked for.
const maxErrors = 200

func check(ctx context.Context, locate Locate, paths []string, given Params) *Checked {
	checked := &Checked{Errors: &diag.List{}}
	table := verb.NewTable()
	found := collect(locate, paths, checked.Errors)
	checked.Files = len(found)
	var files []*ast.File
	var inputs []input
	for i, file := range eachFile(ctx, found, checked.Errors, func(in input, errors *diag.List) *ast.File {
		return parse(locate, in.path, table, errors)
	}) {
		if file != nil {
			files, inputs = append(files, file), append(inputs, found[i])
		}
	}
	params := given.of(files)
	if len(params) > 0 && len(files) == checked.Files {
		checked.ParamErrors = compile.CheckParams(files, params)
	}
	if len(checked.ParamErrors) > 0 {
		return checked
	}
	wrong := make(map[string]bool)
	for _, each := range checked.Errors.Sorted() {
		wrong[each.Span.File()] = wrong[each.Span.File()] || !each.Code.IsWarning()
	}
	scenarios := eachFile(ctx, files, checked.Errors, func(file *ast.File, errors *diag.List) *compile.Scenario {
		return compile.Compile(
			file,
			compile.Options{
				Params: params, InspectModule: inspectModule, ParseScript: given.ParseScript, Locate: locate,
				Hosts: given.Hosts, Wrong: wrong[file.Root.Source.Name],
			},
			errors,
		)
	})
	for i, file := range files {
		if scenarios[i] == nil {
			continue // it was left within, as it has too many errors
		}
		checked.Scenarios = append(checked.Scenarios, Scenario{
			Path: inputs[i].path, Compiled: scenarios[i], Library: file.IsLibrary(), Named: inputs[i].named,
			locate: locate,
		})
	}
	return checked
}

// eachFile does something for each file, on all processors, and returns the results in the files' order.  What is
// wrong with them comes into errors in that order, too.
func eachFile[F, R any](ctx context.Context, files []F, errors *diag.List, do func(F, *diag.List) R) []R {
	results, lists := make([]R, len(files)), make([]diag.List, len(files))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(files)) {
		workers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(files) && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				lists[i].Until(maxErrors, func() { results[i] = do(files[i], &lists[i]) })
			}
		})
	}
	workers.Wait()
	for i := range lists {
		errors.Join(&lists[i])
	}
	return results
}

// parse takes a file through the stages that concern it alone.
func parse(locate Locate, path string, table *verb.Table, errors *diag.List) *ast.File {
	if source := read(locate, path, errors); source != nil {
		if root := syntax.Parse(source, errors); root != nil {
			return ast.Read(root, table, errors)
		}
	}
	return nil
}

// input is a file to read.
type input struct {
	path string
	// named means that the user gave the file itself, not a directory around it.
	named bool
}

// collect lists the files of the paths: a file stands for itself, a directory for the scenarios below it,
// in the order of their names.  It reports files that cannot be read.
func collect(locate Locate, paths []string, errors *diag.List) []input {
	var inputs []input
	seen := make(map[string]bool)
	add := func(path string, named bool) {
		if clean := filepath.Clean(path); !seen[clean] {
			seen[clean] = true
			inputs = append(inputs, input{path, named})
		}
	}
	for _, path := range paths {
		info, err := os.Stat(locate(path))
		switch {
		case err != nil:
			unreadable(path, err, errors)
		case info.IsDir():
			for _, file := range walk(locate, path, errors) {
				add(file, false)
			}
		default:
			add(path, true)
		}
	}
	return inputs
}

// walk lists the scenarios below a directory.
func walk(locate Locate, directory string, errors *diag.List) []string {
	var files []string
	from := locate(directory)
	err := filepath.WalkDir(from, func(file string, entry fs.DirEntry, err error) error {
		path := file
		if within, relErr := filepath.Rel(from, file); relErr == nil && from != directory {
			path = filepath.Join(directory, within)
		}
		switch {
		case err != nil:
			unreadable(path, err, errors)
			return nil
		case entry.IsDir() && path != directory && strings.HasPrefix(entry.Name(), "."):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".yml" || !isScenario(file):
			return nil
		}
		files = append(files, path)
		return nil
	})
	if err != nil {
		unreadable(directory, err, errors)
	}
	slices.Sort(files)
	return files
}

// isScenario reports whether a file is one with the key that scenarios begin with.  Other YAML files in the same
// directories, and pipes and devices, are skipped.  A file that cannot be opened counts: read reports the reason.
func isScenario(path string) bool {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return false
	}
	head, err := bounded.Read(path, 64<<10)
	return err != nil || syntax.IsScenario(head)
}

// read returns the text of a file, or nil after saying why not.
func read(locate Locate, path string, report *diag.List) *diag.Source {
	text, err := bounded.Read(locate(path), syntax.MaxBytes+1)
	if err != nil {
		unreadable(path, err, report)
		return nil
	}
	return diag.NewSource(path, text)
}

func unreadable(path string, err error, report *diag.List) {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		err = pathError.Err
	}
	d := report.Report(diag.Unreadable, diag.NewSource(path, nil).Start(), "the file cannot be read: %s", err)
	if errors.Is(err, fs.ErrNotExist) {
		d.WithHint("%s", similarFile(path))
	}
}

// similarFile looks for a file of nearly that name.
func similarFile(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return "there is no directory " + filepath.Dir(path)
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	if near := diag.Suggest(filepath.Base(path), names); near != "" {
		return "did you mean \"" + filepath.Join(filepath.Dir(path), near) + "\"?"
	}
	return ""
}

// Located is the file of the scenario.
func (s Scenario) Located() string { return s.locate(s.Path) }

// Needs lists the other files that a scenario needs: what it imports, the modules of its guests, and what guests
// and programs read.
func (s Scenario) Needs() []string {
	files := slices.Clone(s.Compiled.Imports)
	for _, role := range s.Compiled.Roles {
		var needed []string
		switch {
		case role.Guest != nil:
			needed = role.Guest.Files()
		case role.Program != nil:
			needed = role.Program.Inputs
		}
		for _, file := range needed {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
	}
	return files
}

// Setting is a line of a file that is a mapping of names to scalars, or to lists of scalars.
type Setting struct {
	Name   string
	Values []string
	// Span is the name's, Spans are the values'.
	Span  diag.Span
	Spans []diag.Span
}

// ReadSettings reads such a file: parameters of --params, or the configuration.  It returns what is wrong in
// the same form as Check.  A file without a line has no settings, and nothing is wrong with it.
func ReadSettings(path string) ([]Setting, *diag.List) {
	errors := &diag.List{}
	source := read(inPlace, path, errors)
	if source == nil {
		return nil, errors
	}
	root := syntax.Parse(source, errors)
	if root == nil {
		if found := errors.Sorted(); len(found) == 1 && found[0].Code == diag.Empty {
			return nil, &diag.List{}
		}
		return nil, errors
	}
	if root.Kind != syntax.Mapping {
		errors.Report(diag.WrongShape, root.Span(), "this must be a mapping of names to values, and is a %s", root.Kind)
		return nil, errors
	}
	settings := make([]Setting, 0, len(root.Pairs))
	for _, pair := range root.Pairs {
		setting := Setting{Name: pair.Key.Value, Span: pair.Key.Span()}
		values := []*syntax.Node{pair.Value}
		if pair.Value.Kind == syntax.Sequence {
			values = pair.Value.Items
		}
		for _, value := range values {
			if value.Kind != syntax.Scalar {
				errors.Report(
					diag.WrongShape, value.Span(), "the value of %q must be a scalar, and is a %s", setting.Name,
					value.Kind,
				)
				continue
			}
			setting.Values = append(setting.Values, value.Value)
			setting.Spans = append(setting.Spans, value.Span())
		}
		settings = append(settings, setting)
	}
	return settings, errors
}
