package scenario

import (
	"context"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Scenario is a file that was checked.
type Scenario struct {
	Path    string
	Program *compile.Program
	// Library tells that the file has only fragments.
	Library bool
	// Named tells that the user gave the file itself, not a directory around it.
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

// CheckIn is Check for paths whose files are elsewhere, until ctx ends: then its error is the cause, and the files
// that are being checked are left behind, to come to their own end.
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
	for i, file := range eachFile(ctx, found, checked.Errors, func(in input, errors *diag.List) *ast.File { return parse(locate, in.path, table, errors) }) {
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
	programs := eachFile(ctx, files, checked.Errors, func(file *ast.File, errors *diag.List) *compile.Program {
		return compile.Compile(file, compile.Options{Params: params, InspectModule: inspectModule, Locate: locate, Wrong: wrong[file.Root.Source.Name]}, errors)
	})
	for i, file := range files {
		if programs[i] == nil {
			continue // it was left within, as it has too many errors
		}
		checked.Scenarios = append(checked.Scenarios, Scenario{
			Path: inputs[i].path, Program: programs[i], Library: file.IsLibrary(), Named: inputs[i].named, locate: locate,
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
	source := read(locate, path, errors)
	if source == nil {
		return nil
	}
	root := syntax.Parse(source, errors)
	if root == nil {
		return nil
	}
	return ast.Read(root, table, errors)
}
