package shape

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// File is a scenario as written.
type File struct {
	Root      *syntax.Node
	Name      *syntax.Node
	Doc       *syntax.Node
	Tags      []*syntax.Node
	Timeout   *syntax.Node
	QueuePair *syntax.Node // defaults.qp
	Params    []*Param
	Roles     []*Role
	Setup     []*Step
	Steps     []*Step
	Cases     []*Case
	Finally   []*Step
	Fragments []*Fragment
}

// Param is a parameter of a file or of a fragment.
type Param struct {
	Name    *syntax.Node // the key
	Type    string
	Default *syntax.Node
	Min     *syntax.Node
	Max     *syntax.Node
	Values  []*syntax.Node
	Doc     *syntax.Node
}

// Role is one party.
type Role struct {
	Name    *syntax.Node // the key
	Device  *syntax.Node
	Buffers []*Buffer
	Guest   *Guest
}

// Buffer is registered memory of a role.
type Buffer struct {
	Name   *syntax.Node // the key
	Size   *syntax.Node
	Access []*syntax.Node
}

// Guest is the program that plays a role.
type Guest struct {
	Node   *syntax.Node
	Module *syntax.Node
	Args   []*syntax.Node
	Time   *syntax.Node
	Memory *syntax.Node
}

// Case is one named test of a file.
type Case struct {
	Name    *syntax.Node
	Tags    []*syntax.Node
	Timeout *syntax.Node
	Steps   []*Step
}

// Fragment is a list of steps with parameters.
type Fragment struct {
	Name   *syntax.Node // the key
	Params []*Param
	Steps  []*Step
}

// IsLibrary tells whether a file has only fragments, and so nothing to run.
func (f *File) IsLibrary() bool { return f.Steps == nil && f.Cases == nil && len(f.Fragments) > 0 }

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
	{"params", "parameters, set by -p"},
	{"defaults", "queue pair attributes of all endpoints"},
	{"roles", "the parties"},
	{"setup", "steps before the steps of each case"},
	{"steps", "the only case"},
	{"cases", "several cases"},
	{"finally", "steps after those of each case, also after a failure"},
	{"fragments", "steps to use in several places"},
}

func (r *reader) file(root *syntax.Node) *File {
	f := &File{Root: root}
	r.keys(root, fileKeys)
	f.Name = r.text(root.Get("name"))
	f.Doc = r.text(root.Get("doc"))
	f.Tags = r.list(root.Get("tags"), "tags")
	f.Timeout = root.Get("timeout")
	f.QueuePair = r.defaults(root.Get("defaults"))
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

func (r *reader) defaults(node *syntax.Node) *syntax.Node {
	if node == nil || !r.mapping(node, "defaults") {
		return nil
	}
	r.keys(node, defaultsKeys)
	qp := node.Get("qp")
	if qp == nil || !r.mapping(qp, "qp") {
		return nil
	}
	return qp
}

func (r *reader) cases(node *syntax.Node) []*Case {
	var cases []*Case
	for _, item := range r.list(node, "cases") {
		if !r.mapping(item, "a case") {
			continue
		}
		r.keys(item, caseKeys)
		c := &Case{
			Name:    r.text(r.required(item, "name", "a case")),
			Tags:    r.list(item.Get("tags"), "tags"),
			Timeout: item.Get("timeout"),
		}
		if steps := r.required(item, "steps", "a case"); steps != nil {
			c.Steps = r.steps(steps)
		}
		if c.Name != nil {
			cases = append(cases, c)
		}
	}
	return cases
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
