package ast

import (
	"slices"

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

// fileKeys are the keys of a file in the order of the documentation.
var fileKeys = []key{
	{"rdmarun", "version of the language"},
	{"name", "what reports call it"},
	{"doc", "what it is for"},
	{"tags", "words to select by"},
	{"timeout", "time a case may take"},
	{"stall_timeout", "time in which no step ends before a case counts as stuck"},
	{"params", "parameters, set by -p"},
	{"matrix", "values that the file runs with, each combination"},
	{"imports", "files with fragments, or standard ones such as std/cm, by the prefix of their use"},
	{"requires", "conditions without which the file is skipped"},
	{"provider", "soft: its clock and seed"},
	{"defaults", "arguments of all steps that do not give them"},
	{"roles", "the parties"},
	{"setup", "steps before the steps of each case"},
	{"steps", "the only case"},
	{"cases", "several cases"},
	{"finally", "steps after those of each case, also after a failure"},
	{"fragments", "steps to use in several places"},
	{"thresholds", "limits on what the cases measure; each concerns those that measure it"},
}

func (r *reader) file(root *syntax.Node) *File {
	f := &File{Root: root}
	r.keys(root, fileKeys)
	f.Name = r.text(root.Get("name"))
	f.Doc = r.text(root.Get("doc"))
	f.Tags = r.list(root.Get("tags"), "tags")
	f.Timeout = root.Get("timeout")
	f.Stall = root.Get("stall_timeout")
	f.Matrix = r.matrix(root.Get("matrix"))
	f.Imports = r.imports(root.Get("imports"))
	f.Requires = r.words(root.Get("requires"), "requires")
	f.Soft = r.provider(root.Get("provider"))
	f.Defaults = r.defaults(root.Get("defaults"))
	f.Thresholds = r.thresholds(root.Get("thresholds"))
	f.Params = r.params(root.Get("params"), fileParamTypes)
	f.Roles = r.roles(root.Get("roles"))
	f.Fragments = r.fragments(root.Get("fragments"))
	f.Setup = r.optionalSteps(root, "setup")
	f.Steps = r.optionalSteps(root, "steps")
	f.Cases = r.cases(root.Get("cases"))
	f.Finally = r.optionalSteps(root, "finally")
	switch {
	case root.Get("steps") != nil && root.Get("cases") != nil:
		r.errors.Report(diag.Conflict, root.Key("cases").Span(), "a file has either \"steps\" or \"cases\"").
			WithHint("\"steps\" is one case without a name; make it one of the cases")
	case root.Get("steps") == nil && root.Get("cases") == nil && root.Get("fragments") == nil:
		r.errors.Report(diag.MissingKey, root.Span(), "the scenario has neither \"steps\" nor \"cases\"")
	}
	return f
}

func (r *reader) imports(node *syntax.Node) []*Import {
	if node == nil || !r.mapping(node, "imports") {
		return nil
	}
	var imports []*Import
	for _, pair := range node.Pairs {
		if r.name(pair.Key) && r.kind(pair.Value, syntax.Scalar, "an import") {
			imports = append(imports, &Import{pair.Key, pair.Value})
		}
	}
	return imports
}

func (r *reader) provider(node *syntax.Node) *Soft {
	if node == nil || !r.mapping(node, "provider") {
		return nil
	}
	r.keys(node, providerKeys)
	soft := node.Get("soft")
	if soft == nil || !r.mapping(soft, "soft") {
		return nil
	}
	r.keys(soft, softKeys)
	return &Soft{Clock: r.text(soft.Get("clock")), Seed: r.text(soft.Get("seed"))}
}

func (r *reader) defaults(node *syntax.Node) *Defaults {
	if node == nil || !r.mapping(node, "defaults") {
		return nil
	}
	d := &Defaults{}
	for _, pair := range node.Pairs {
		switch {
		case pair.Key.Value == "qp":
			if r.mapping(pair.Value, "qp") {
				d.QueuePair = pair.Value
			}
		case pair.Key.Value == "within":
			d.Within = r.text(pair.Value)
		case r.table.Lookup(pair.Key.Value) != nil:
			if r.mapping(pair.Value, "the defaults of "+pair.Key.Value) {
				d.Verbs = append(d.Verbs, pair)
			}
		default:
			known := append([]string{"qp", "within"}, r.table.Names()...)
			r.errors.Report(diag.UnknownKey, pair.Key.Span(), "unknown key %q", pair.Key.Value).
				WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, known), "there are: qp, within, and the verbs"))
		}
	}
	return d
}

func hintOr(hint, other string) string {
	if hint == "" {
		return other
	}
	return hint
}

// Threshold is a limit on a metric.
type Threshold struct {
	Metric *syntax.Node
	Pass   []*syntax.Node
	If     *syntax.Node
	// Abort is a mapping, {} for `true`; nil: nothing ends early.
	Abort *syntax.Node
}

func (r *reader) thresholds(node *syntax.Node) []*Threshold {
	var thresholds []*Threshold
	for _, item := range r.list(node, "thresholds") {
		if !r.mapping(item, "a threshold") {
			continue
		}
		r.keys(item, thresholdKeys)
		t := &Threshold{
			Metric: r.text(r.required(item, "metric", "a threshold")),
			Pass:   r.words(r.required(item, "pass", "a threshold"), "pass"),
			If:     r.text(item.Get("if")),
			Abort:  r.abort(item.Get("abort_on_fail")),
		}
		if t.Metric != nil && !slices.Contains(t.Pass, nil) {
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

func (r *reader) fragments(node *syntax.Node) []*Fragment {
	if node == nil || !r.mapping(node, "fragments") {
		return nil
	}
	var fragments []*Fragment
	for _, pair := range node.Pairs {
		if !r.name(pair.Key) || !r.mapping(pair.Value, "a fragment") {
			continue
		}
		r.keys(pair.Value, fragmentKeys)
		fragment := &Fragment{Name: pair.Key, Params: r.params(pair.Value.Get("params"), fragmentParamTypes)}
		if steps := r.required(pair.Value, "do", "a fragment"); steps != nil {
			fragment.Steps = r.steps(steps)
		}
		fragments = append(fragments, fragment)
	}
	return fragments
}
