package compile

import (
	"cmp"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"rdmarun/host/bounded"
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/standard"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// use expands a fragment.
func (x *expander) use(step *ast.Step, at place) Action {
	fragment, from := lookUp(x, step.Body, fragmentKind)
	if fragment == nil {
		return &Block{}
	}
	name := step.Body.Value
	if from != x.main {
		name = from.file.Root.Source.Name + ":" + fragment.Name.Value
	}
	if slices.Contains(x.using, name) {
		path := append(slices.Clone(x.using[slices.Index(x.using, name):]), name)
		x.errors.Report(
			diag.Recursion, step.Body.Span(), "the fragment %q uses itself: %s", name, strings.Join(path, " -> "),
		).
			WithHint("`repeat` does steps several times")
		return &Block{}
	}
	x.used[fragment] = true
	u := &Use{Fragment: step.Body.Value}
	inner := from.global.inner()
	x.bindParams(u, step, fragment, at, inner, from.global)
	x.using = append(x.using, name)
	before := x.current
	x.current = from
	u.Steps = x.stepList(fragment.Steps, inner)
	x.current = before
	x.using = x.using[:len(x.using)-1]
	return u
}

func (x *expander) bindParams(u *Use, step *ast.Step, fragment *ast.Fragment, at place, inner, global *scope) {
	known := make([]string, len(fragment.Params))
	for i, param := range fragment.Params {
		known[i] = param.Name.Value
		x.bindParam(u, step, fragment, param, at, inner, global)
	}
	if step.With == nil {
		return
	}
	for _, pair := range step.With.Pairs {
		if slices.Contains(known, pair.Key.Value) {
			continue
		}
		bad := x.errors.Report(
			diag.UnknownParameter, pair.Key.Span(), "the fragment %q has no parameter %q", u.Fragment, pair.Key.Value,
		)
		if len(known) == 0 {
			bad.WithHint("it has none")
		} else {
			bad.WithOneOf(pair.Key.Value, known)
		}
	}
}

// unbound is a parameter without a known value.
func unbound(param *ast.Param) name {
	return name{kind: paramType(param, nil), declared: param.Name}
}

func (x *expander) bindParam(
	u *Use, step *ast.Step, fragment *ast.Fragment, param *ast.Param, at place, inner, global *scope,
) {
	word := param.Name.Value
	node, scope := step.With.Get(word), at.scope
	if node == nil {
		node, scope = param.Default, global
	}
	if node == nil {
		x.errors.Report(
			diag.MissingParameter, step.Key.Span(), "the fragment %q needs the parameter %q", fragment.Name.Value, word,
		).
			WithHint("with: {%s: ..}", word)
		inner.names[word] = unbound(param)
		return
	}
	node, scope = scope.resolve(node)
	bound := unbound(param)
	if param.Untyped {
		inner.names[word] = bound
		return
	}
	defer func() { inner.names[word] = bound }()
	if param.Type.Value == "map" {
		if node.Kind != syntax.Mapping && !x.abstract {
			x.errors.Report(
				diag.WrongShape, node.Span(), "the parameter %q is a mapping, and this is a %s", word, node.Kind,
			)
		}
		bound.mapping, bound.scope = node, scope
		return
	}
	argument := x.paramArgument(param)
	value := x.argument(argument, node, place{scope: scope})
	if value == nil {
		return
	}
	known, constant := value.Constant()
	if text, ok := known.(string); ok && param.Type.Value == "role" && x.roles[text] == nil {
		if step.With.Get(word) != nil {
			x.unknownRole(text, value.Span)
		} else {
			x.errors.Report(
				diag.UnknownRole, step.Body.Span(),
				"there is no role %q, which this fragment is for unless another is given", text,
			).
				WithHint("with: {%s: ROLE}, which can be %s", word, strings.Join(x.roleNames(), ", "))
		}
		known = nil
	}
	bound.kind, bound.value, bound.hex, bound.show = paramType(param, known), known, value.Hex, shown(argument)
	if !constant {
		bound.word = x.wordOf(node, place{scope: scope})
	}
	u.With = append(u.With, Parameter{word, value})
}

// module is a file as the fragments and fixtures in it see it: their names, and those of the files it imports.
type module struct {
	file      *ast.File
	fragments map[string]*ast.Fragment
	fixtures  map[string]*ast.Fixture
	imports   map[string]*module
	// global is the scope of its fixtures, and of its fragments, without their parameters.  An imported file has no
	// parameters.
	global *scope
}

// module reads the fragments, fixtures and imports of a file.  chain are the files on the way to it, and itself.
func (x *expander) module(file *ast.File, global *scope, chain []string) *module {
	m := &module{
		file: file, global: global, imports: make(map[string]*module),
		fragments: make(map[string]*ast.Fragment), fixtures: make(map[string]*ast.Fixture),
	}
	for _, fragment := range file.Fragments {
		m.fragments[fragment.Name.Value] = fragment
	}
	for _, fixture := range file.Fixtures {
		m.fixtures[fixture.Name.Value] = fixture
	}
	own := chain[len(chain)-1]
	for _, each := range file.Imports {
		path := each.Path.Value
		if !filepath.IsAbs(path) && !standard.Is(path) {
			path = onDisk(filepath.Join(filepath.Dir(own), path))
		}
		if i := slices.Index(chain, path); i >= 0 {
			x.errors.Report(
				diag.ImportCycle, each.Path.Span(), "the file imports itself: %s",
				strings.Join(append(chain[i:], path), " -> "),
			).
				WithHint("put what both need into a third file")
			m.imports[each.Name.Value] = nil
			continue
		}
		m.imports[each.Name.Value] = x.library(each, path, chain) // nil for one that is broken
	}
	return m
}

// onDisk is the clean path of a file, which no import of standard fragments is.
func onDisk(path string) string {
	if path = filepath.Clean(path); standard.Is(path) {
		return "." + string(filepath.Separator) + path
	}
	return path
}

// library reads an imported file, once for all that import it.
func (x *expander) library(each *ast.Import, path string, chain []string) *module {
	if known, seen := x.libraries[path]; seen {
		return known
	}
	x.libraries[path] = nil
	text := x.libraryText(each, path)
	if text == nil {
		return nil
	}
	if !syntax.IsScenario(text) {
		// A scenario from elsewhere may name any file, such as one with keys or passwords: none of its text is shown.
		x.errors.Report(diag.Import, each.Path.Span(), "%s is not a scenario", path).WithHint(
			"a file of fragments begins with: rdmarun: v1",
		)
		return nil
	}
	before := x.errors.Len()
	root := syntax.Parse(diag.NewSource(path, text), x.errors)
	if root == nil {
		return nil
	}
	file := ast.Read(root, verb.NewTable(), x.errors)
	switch {
	case file == nil, !file.IsLibrary() && x.errors.Len() > before: // it may be one with a key that is misspelled
		return nil
	case !file.IsLibrary():
		x.errors.Report(
			diag.Import, each.Path.Span(), "%s has steps of its own, and only fragments and fixtures can be imported",
			path,
		).
			WithHint("put them into a file without \"steps\" and \"cases\"")
		return nil
	}
	x.libraries[path] = x.module(file, newScope(), append(slices.Clone(chain), path))
	return x.libraries[path]
}

// libraryText reads what is imported; nil after saying why not.
func (x *expander) libraryText(each *ast.Import, path string) []byte {
	if standard.Is(each.Path.Value) {
		text, found := standard.Text(path)
		if !found {
			x.errors.Report(diag.Import, each.Path.Span(), "there are no standard fragments %s", path).
				WithHint(
					"%s",
					cmp.Or(
						diag.DidYouMean(path, standard.Names()),
						diag.ThereAre(standard.Names())+"; a file of that name is ./"+path,
					),
				)
		}
		return text
	}
	text, err := bounded.Read(x.options.locate(path), syntax.MaxBytes+1)
	if err != nil {
		var pathError *fs.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		x.errors.Report(diag.Import, each.Path.Span(), "%s cannot be read: %s", path, err).
			WithHint("the path is relative to the file that imports")
		return nil
	}
	return text
}

// libraryLike is the import that was probably forgotten where a prefix is used.
func libraryLike(prefix string) string {
	for _, name := range standard.Names() {
		if path.Base(name) == prefix {
			return name
		}
	}
	return "lib/" + prefix + ".yaml"
}

// kind is what files name and import: fragments or fixtures.
type kind[T any] struct {
	what    string
	unknown diag.Code
	of      func(*module) map[string]*T
}

var (
	fragmentKind = kind[ast.Fragment]{
		"fragment", diag.UnknownFragment, func(m *module) map[string]*ast.Fragment { return m.fragments },
	}
	fixtureKind = kind[ast.Fixture]{
		"fixture", diag.UnknownFixture, func(m *module) map[string]*ast.Fixture { return m.fixtures },
	}
)

// lookUp finds one of a kind, NAME of the file itself or PREFIX.NAME of an import.
func lookUp[T any](x *expander, node *syntax.Node, kind kind[T]) (*T, *module) {
	name, from := node.Value, x.current
	if prefix, rest, dotted := strings.Cut(name, "."); dotted {
		imported, known := from.imports[prefix]
		if !known {
			x.errors.Report(kind.unknown, node.Span(), "nothing is imported as %q", prefix).
				WithHint(
					"%s",
					cmp.Or(
						diag.DidYouMean(prefix, sortedKeys(from.imports)),
						"imports: {"+prefix+": "+libraryLike(prefix)+"}",
					),
				)
			return nil, nil
		}
		if imported == nil {
			return nil, nil // which was reported where it is imported
		}
		name, from = rest, imported
	}
	there := kind.of(from)
	if found := there[name]; found != nil {
		return found, from
	}
	hint := diag.DidYouMean(name, sortedKeys(there))
	if hint == "" && from == x.current {
		for _, prefix := range sortedKeys(from.imports) {
			if imported := from.imports[prefix]; imported != nil && kind.of(imported)[name] != nil {
				hint = "did you mean \"" + prefix + "." + name + "\"?"
			}
		}
	}
	if hint == "" && from != x.current {
		hint = diag.ThereAre(sortedKeys(there))
	}
	x.errors.Report(kind.unknown, node.Span(), "there is no %s %q", kind.what, node.Value).
		WithHint("%s", cmp.Or(hint, "define "+kind.what+"s under the key \""+kind.what+"s\" of the file"))
	return nil, nil
}
