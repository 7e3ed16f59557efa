package ast

import (
	"cmp"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Read checks the shape of a file.  It returns nil when the root is no scenario at all.
func Read(root *syntax.Node, table *verb.Table, errors *diag.List) *File {
	r := &reader{table: table, errors: errors}
	if root.Kind != syntax.Mapping {
		errors.Report(diag.NotScenario, root.Span(), "a scenario is a mapping, and this is a %s", root.Kind).
			WithHint("it begins with: rdmarun: v1")
		return nil
	}
	if !r.version(root) {
		return nil
	}
	return r.file(root)
}

// Version is the version of the language.
const Version = "v1"

func (r *reader) version(root *syntax.Node) bool {
	version := root.Get("rdmarun")
	switch {
	case version == nil:
		d := r.errors.Report(diag.NotScenario, root.Span(), "not a scenario: the key \"rdmarun\" is missing").
			WithHint("a scenario begins with: rdmarun: %s", Version)
		for _, pair := range root.Pairs {
			if diag.Suggest(pair.Key.Value, []string{"rdmarun"}) != "" {
				d.Span = pair.Key.Span()
				d.WithHint("did you mean \"rdmarun\"?")
			}
		}
		return false
	case version.Value != Version:
		r.errors.Report(diag.Version, version.Span(), "version %q of the language is not known", version.Value).
			WithHint("this rdmarun reads %s; a newer one may read more", Version)
		return false
	}
	return true
}

func (r *reader) file(root *syntax.Node) *File {
	f := &File{Root: root}
	r.read(root, fileSection, f)
	switch {
	case root.Get("steps") != nil && root.Get("cases") != nil:
		r.errors.Report(diag.Conflict, root.Key("cases").Span(), "a file has either \"steps\" or \"cases\"").
			WithHint("\"steps\" is one case without a name; make it one of the cases")
	case root.Get("steps") == nil && root.Get("cases") == nil && root.Get("fragments") == nil:
		r.errors.Report(diag.MissingKey, root.Span(), "the scenario has neither \"steps\" nor \"cases\"")
	}
	return f
}

// named calls read for each entry of a mapping of names.
func (r *reader) named(node *syntax.Node, what string, read func(name, value *syntax.Node)) {
	if !r.mapping(node, what) {
		return
	}
	for _, pair := range node.Pairs {
		if r.name(pair.Key) {
			read(pair.Key, pair.Value)
		}
	}
}

func (r *reader) imports(node *syntax.Node) (imports []*Import) {
	r.named(node, "imports", func(name, path *syntax.Node) {
		if r.kind(path, syntax.Scalar, "an import") {
			imports = append(imports, &Import{name, path})
		}
	})
	return imports
}

// provider reads a word, or a mapping of settings by provider.
func (r *reader) provider(node *syntax.Node) *Provider {
	p := &Provider{}
	if node.Kind == syntax.Scalar && !node.IsNull() {
		p.Name = node
		return p
	}
	if !r.mapping(node, "provider") {
		return nil
	}
	r.keys(node, providerKeys)
	if settings := node.Get("soft"); settings != nil {
		soft := &Soft{}
		if r.read(settings, softSection, soft) {
			p.Soft = soft
		}
	}
	if settings := node.Get("verbs"); settings != nil {
		verbs := &Verbs{}
		if r.read(settings, verbsSection, verbs) {
			p.Verbs = verbs
		}
	}
	return p
}

func (r *reader) defaults(node *syntax.Node) *Defaults {
	if !r.mapping(node, "defaults") {
		return nil
	}
	d := &Defaults{}
	for _, pair := range node.Pairs {
		switch name := pair.Key.Value; {
		case name == "qp":
			if r.mapping(pair.Value, "qp") {
				d.QueuePair = pair.Value
			}
		case name == "within":
			d.Within = r.text(pair.Value)
		case r.table.Lookup(name) != nil:
			if r.mapping(pair.Value, "the defaults of "+name) {
				d.Verbs = append(d.Verbs, pair)
			}
		default:
			known := append(Names(defaultsKeys), r.table.Names()...)
			r.errors.Report(diag.UnknownKey, pair.Key.Span(), "unknown key %q", name).
				WithHint("%s", cmp.Or(diag.DidYouMean(name, known), "there are: qp, within, and the verbs"))
		}
	}
	return d
}

func (r *reader) thresholds(node *syntax.Node) (thresholds []*Threshold) {
	for _, item := range r.list(node, "thresholds") {
		t := &Threshold{}
		if !r.read(item, thresholdSection, t) {
			continue
		}
		if t.Abort = r.abort(item.Get("abort_on_fail")); t.Metric != nil {
			thresholds = append(thresholds, t)
		}
	}
	return thresholds
}

// abort reads `abort_on_fail: true` or {after: 2s}.
func (r *reader) abort(node *syntax.Node) *syntax.Node {
	switch {
	case node == nil, node.Kind == syntax.Scalar && node.Value == "false":
		return nil
	case node.Kind == syntax.Scalar && node.Value == "true":
		return node
	case !r.mapping(node, "abort_on_fail"):
		return nil
	}
	r.keys(node, abortKeys)
	return node
}

func (r *reader) fragments(node *syntax.Node) (fragments []*Fragment) {
	r.named(node, "fragments", func(name, value *syntax.Node) {
		fragment := &Fragment{Name: name}
		if r.read(value, fragmentSection, fragment) {
			fragment.Params = r.params(value.Get("params"), fragmentParamTypes)
			fragments = append(fragments, fragment)
		}
	})
	return fragments
}
