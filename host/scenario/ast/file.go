package ast

import (
	"cmp"
	"slices"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Read checks the shape of a file.  It returns nil when the root is not a scenario at all.
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
	case syntax.IsLab(version.Value):
		r.errors.Report(diag.NotScenario, version.Span(), "a lab file is not a scenario").
			WithHint("pass it as: rdmarun run --lab %s SCENARIO...", root.Source.Name)
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
	case !slices.ContainsFunc([]string{"steps", "cases", "fragments", "fixtures"}, func(key string) bool {
		return root.Get(key) != nil || diag.Misspelled(key, root.Keys(), Names(fileSection.keys))
	}):
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

func (r *reader) fixtures(node *syntax.Node) (fixtures []*Fixture) {
	r.named(node, "fixtures", func(name, value *syntax.Node) {
		fixture := &Fixture{Name: name}
		if !r.read(value, fixtureSection, fixture) {
			return
		}
		r.scope(fixture.Scope)
		fixtures = append(fixtures, fixture)
	})
	return fixtures
}

// scope checks the scope of a fixture.  Other tools have one for a whole run, by several names.
func (r *reader) scope(scope *syntax.Node) {
	if scope == nil || slices.Contains(Scopes(), scope.Value) {
		return
	}
	wrong := r.errors.Report(diag.NotOneOf, scope.Span(), "there is no scope %q", scope.Value)
	switch scope.Value {
	case "session", "package":
		wrong.WithHint("write scope: run")
	case "module":
		wrong.WithHint("write scope: file")
	default:
		wrong.WithOneOf(scope.Value, Scopes())
	}
}

func (r *reader) roles(node *syntax.Node) (roles []*Role) {
	r.named(node, "roles", func(name, value *syntax.Node) {
		role := &Role{Name: name}
		if value.IsNull() || r.role(role, value) {
			roles = append(roles, role)
		}
	})
	return roles
}

func (r *reader) role(role *Role, node *syntax.Node) bool {
	if !r.read(node, roleSection, role) {
		return false
	}
	if optional := role.Optional; optional != nil && optional.Value != "true" && optional.Value != "false" {
		r.errors.Report(diag.WrongType, optional.Span(), "optional is true or false")
	}
	r.where(role, node)
	r.provided(role, node.Get("provider"))
	if labels := node.Get("labels"); labels != nil {
		r.named(labels, "labels", func(name, value *syntax.Node) {
			if r.kind(value, syntax.Scalar, "a label") {
				role.Labels = append(role.Labels, syntax.Pair{Key: name, Value: value})
			}
		})
	}
	switch buffers := node.Get("buffers"); {
	case buffers == nil:
	case role.Guest != nil, role.Program != nil:
		r.errors.Report(
			diag.Conflict, node.Key("buffers").Span(), "a guest or a program has its own memory, so its role has no "+
				"buffers",
		)
	default:
		role.Buffers = r.buffers(buffers)
	}
	if role.Program != nil && role.Optional != nil {
		r.errors.Report(
			diag.Misplaced, role.Optional.Span(), "optional is for guests; a program is looked for in the run",
		).
			WithHint("requires: [program.%s] skips the case where it is missing", role.Name.Value)
	}
	if role.Guest != nil && role.Program != nil {
		r.errors.Report(diag.Conflict, node.Key("program").Span(), "a guest plays this role already")
		role.Program = nil
	}
	return true
}

// provided checks what only the provider of a role is: one, without what all roles of a case share.
func (r *reader) provided(role *Role, node *syntax.Node) {
	p := role.Provider
	if p == nil || p.Name != nil {
		return
	}
	switch {
	case len(node.Pairs) == 0:
		r.errors.Report(diag.MissingKey, node.Span(), "provider says nothing").WithHint(
			"%s", diag.ThereAre(Names(providerKeys)),
		)
	case len(node.Pairs) > 1:
		r.errors.Report(diag.Conflict, node.Pairs[1].Key.Span(), "a role has one provider, and this is a second one")
	case hasKey(providerKeys, node.Pairs[0].Key.Value):
		p.Name = node.Pairs[0].Key
	}
	if p.Soft != nil && p.Soft.Clock != nil {
		r.errors.Report(diag.Misplaced, node.Get("soft").Key("clock").Span(), "the clock is that of all roles").
			WithHint("set it in the provider of the file; roles of several providers have the wall clock")
	}
	if p.Verbs != nil && p.Verbs.Device != nil && role.Device != nil {
		r.errors.Report(diag.Conflict, role.Device.Span(), "the role has a device already, in its provider")
	}
}

// where reads the keys for where a role runs.
func (r *reader) where(role *Role, node *syntax.Node) {
	if path := node.Get("path"); path != nil && r.mapping(path, "path") {
		r.keys(path, pathKeys)
		role.GID = r.text(r.required(path, "gid", "path"))
	}
	if cpu := node.Get("cpu"); cpu != nil && cpu.Kind == syntax.Scalar {
		role.CPUs = []*syntax.Node{cpu}
	} else {
		role.CPUs = r.words(cpu, "cpu")
	}
	place := node.Get("place")
	switch {
	case place == nil:
	case place.Kind != syntax.Mapping:
		r.errors.Report(
			diag.WrongShape, place.Span(), "a role cannot be sent to a place: one rdmarun drives all roles",
		).
			WithHint(
				"device, port and path choose where it is on this host; place: {spread: host} skips the case where " +
					"there is one host",
			)
	default:
		r.keys(place, placeKeys)
		role.Spread = r.text(r.required(place, "spread", "place"))
		if role.Spread != nil && role.Spread.Value != "host" {
			r.errors.Report(diag.NotOneOf, role.Spread.Span(), "spread can only be: host")
		}
	}
}

func (r *reader) buffers(node *syntax.Node) (buffers []*Buffer) {
	r.named(node, "buffers", func(name, value *syntax.Node) {
		buffer := &Buffer{Name: name}
		if r.read(value, bufferSection, buffer) {
			buffers = append(buffers, buffer)
		}
	})
	return buffers
}

// guest reads a guest.  It returns one also where something is wrong: the role is a guest's.
func (r *reader) guest(node *syntax.Node) *Guest {
	guest := &Guest{}
	if !r.mapping(node, "guest") || !r.read(node, guestSection, guest) {
		return guest
	}
	switch {
	case guest.Module == nil && guest.Script == nil:
		known := Names(guestSection.keys)
		misspelled := diag.Misspelled("module", node.Keys(), known) || diag.Misspelled("script", node.Keys(), known)
		if node.Get("module") == nil && node.Get("script") == nil && !misspelled {
			r.errors.Report(diag.MissingKey, node.Span(), "a guest needs the key \"module\", or \"script\"")
		}
	case guest.Module != nil && guest.Script != nil:
		r.errors.Report(diag.Conflict, node.Key("script").Span(), "a guest has a module or a script, not both")
		guest.Module, guest.Script = nil, nil // neither is looked at
	}
	if same := guest.Deterministic; same != nil && same.Value != "true" && same.Value != "false" {
		r.errors.Report(diag.WrongType, same.Span(), "deterministic is true or false")
	}
	guest.Env, guest.Files = r.environment(node), r.inputs(node)
	if guest.Stdin != nil && !r.input(guest.Stdin) {
		guest.Stdin = nil
	}
	return guest
}

// program reads a native program: a mapping, or its command alone.
func (r *reader) program(node *syntax.Node) *Program {
	program := &Program{}
	if node.Kind == syntax.Sequence {
		program.Command = r.words(node, "program")
		return program
	}
	if node.Kind == syntax.Scalar && !node.IsNull() {
		r.errors.Report(diag.WrongShape, node.Span(), "a program is a list of words, or a mapping").
			WithHint("program: [%s]", strings.Join(strings.Fields(node.Value), ", "))
		return program // the role is a program's all the same
	}
	if !r.read(node, programSection, program) || len(program.Command) == 0 {
		return program
	}
	program.Env, program.Files = r.environment(node), r.inputs(node)
	if program.Stdin != nil && !r.input(program.Stdin) {
		program.Stdin = nil
	}
	if program.Folder != nil && len(program.Files) > 0 {
		r.errors.Report(diag.Conflict, node.Key("files").Span(), "files are for a new folder, and cwd names another").
			WithHint("leave one of them out")
		program.Files = nil
	}
	return program
}

// environment reads the variables of a guest or a program.
func (r *reader) environment(node *syntax.Node) (variables []syntax.Pair) {
	env := node.Get("env")
	if env == nil || !r.mapping(env, "env") {
		return nil
	}
	for _, pair := range env.Pairs {
		if r.text(pair.Value) != nil {
			variables = append(variables, pair)
		}
	}
	return variables
}

// inputs reads the files of a guest or a program.
func (r *reader) inputs(node *syntax.Node) (inputs []syntax.Pair) {
	files := node.Get("files")
	if files == nil || !r.mapping(files, "files") {
		return nil
	}
	for _, pair := range files.Pairs {
		if r.input(pair.Value) {
			inputs = append(inputs, pair)
		}
	}
	return inputs
}

// input checks the form of what a guest or a program reads: a text, or one key of inputKeys.
func (r *reader) input(node *syntax.Node) bool {
	if node.Kind == syntax.Scalar && !node.IsNull() {
		return true
	}
	if !r.mapping(node, "what a guest or a program reads") {
		return false
	}
	r.keys(node, inputKeys)
	switch {
	case len(node.Pairs) == 0:
		r.errors.Report(diag.MissingKey, node.Span(), "this says nothing").WithHint(
			"%s", diag.ThereAre(Names(inputKeys)),
		)
	case len(node.Pairs) > 1:
		r.errors.Report(diag.Conflict, node.Pairs[1].Key.Span(), "an input is a file or a text, not both")
	default:
		return hasKey(inputKeys, node.Pairs[0].Key.Value) && r.text(node.Pairs[0].Value) != nil
	}
	return false
}
