// Package compile makes a program of a scenario. It resolves names, expands fragments, compiles expressions, and
// computes every value that can be known before the run.
//
// It has three parts, each of which uses those before it. The resolver has the names that are visible at a place. The
// decoder makes values of the file's nodes. The expander expands cases, fragments and counted roles.
//
// A program has been checked, so a run can fail because of its environment, but not because of a typing mistake.
package compile

import (
	"path/filepath"

	"rdmarun/host/guest"
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/standard"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Options are the inputs of a program in addition to the file.
type Options struct {
	// Params are values of parameters, by name, as text.  Names that the file does not have are
	// ignored: one command line may run several files.
	Params map[string]string
	// InspectModule looks at a guest's module and lists the functions that it exports; nil leaves modules
	// alone.
	InspectModule func(path string) (map[string]Signature, error)
	// ParseScript finds what is no script; nil leaves that to the run.
	ParseScript func(*guest.Script) error
	// Hosts is how many hosts of a lab a role is placed on; nil: there is no lab.
	Hosts func(role string) int
	// Wrong is set when the file already has errors, so that parts of it may be missing.
	Wrong bool
	// Locate finds the file of a path; nil: it is there.
	Locate func(path string) string
}

func (o *Options) locate(path string) string {
	if o.Locate == nil {
		return path
	}
	return o.Locate(path)
}

// resolver finds the names that are visible at a place: roles, what the steps so far have made, and the file's own
// names.  It reports nothing.
type resolver struct {
	file *ast.File
	// roles are those of the file and, by names such as client[2], the instances of its counted roles.
	roles map[string]*role
	// counted is set if there are any of the latter.
	counted  bool
	global   *scope
	timeline *timeline
	// matrices are those around the current steps.
	matrices []*ast.Matrix
	// fixtures are those of the current combination of the file's matrix that are compiled, each behind what it needs.
	fixtures []*fixture
	// abstract is set while an unused fragment is checked: its parameters have no values.
	abstract bool
}

// decoder makes values of the file's nodes, each of the type of its argument, and reports errors.
type decoder struct {
	*resolver
	errors           *diag.List
	types            *typeTable
	options          Options
	defaultQueuePair *Value
	missing          []string                // parameters without a value
	given            []string                // those with one from outside the file
	inputs           map[*syntax.Node]string // files that guests read, by where they are named
}

// expander makes cases of a file: combinations of matrices, fragments, rounds and instances of counted roles are
// written out, step by step.
type expander struct {
	*decoder
	facts *facts
	// main is the file, current the file of the fragment that is being expanded.
	main, current *module
	libraries     map[string]*module // by path; nil for one that is broken
	// using are the fragments being expanded, to see recursion.
	using []string
	used  map[*ast.Fragment]bool
	// compiled are the same fixtures as they are written, compiling those being compiled, to see cycles, and needed
	// those that some case or fixture needs.
	compiled  map[*ast.Fixture]*fixture
	compiling []*ast.Fixture
	// prefix begins the file's names for the surroundings of the fixture that is being compiled: PREFIX. of an import,
	// "" of the file's own.
	prefix string
	needed map[*ast.Fixture]bool
	// branches are those of the parallel steps around the current step, the outermost first; appointments the
	// barriers in them.
	branches     []*branch
	branchCount  int
	appointments []*appointment
	// around are the current step and the steps around it, the outermost first. inLoop is set inside a loop with
	// timed rounds: loops within it are not timed.
	around []*Step
	inLoop bool
	// unmet are thresholds that nothing is measured for, nil for one that something is; sources are what measures in
	// any case.
	unmet   map[*ast.Threshold]*unmet
	sources []*source
	// long are steps that take longer than a timeout lets them.
	long []lasting
	// steps counts expanded steps.
	steps int
}

func newDecoder(file *ast.File, options Options, errors *diag.List) *decoder {
	names := &resolver{
		file: file, global: newScope(), timeline: newTimeline(),
		roles: make(map[string]*role),
	}
	return &decoder{
		resolver: names, errors: errors, types: newTypeTable(), options: options, inputs: make(map[*syntax.Node]string),
	}
}

// maxSteps bounds how far fragments expand; ten thousand steps are a long scenario.
const maxSteps = 100_000

// Compile makes the program of a file.  Diagnostics go to errors; a program that comes with any must not
// run.
func Compile(file *ast.File, options Options, errors *diag.List) *Scenario {
	x := &expander{
		decoder:   newDecoder(file, options, errors),
		libraries: make(map[string]*module),
		used:      make(map[*ast.Fragment]bool),
		needed:    make(map[*ast.Fixture]bool),
		unmet:     make(map[*ast.Threshold]*unmet),
		facts:     newFacts(),
	}
	scenario := &Scenario{File: file.Root.Source.Name}
	scenario.Name = filepath.Base(scenario.File)
	if file.Name != nil {
		scenario.Name = file.Name.Value
	}
	if file.Doc != nil {
		scenario.Doc = file.Doc.Value
	}
	scenario.Tags = texts(file.Tags)
	scenario.Params = x.params()
	scenario.Given, scenario.Missing = x.given, x.missing
	x.defaultQueuePair = constant(verb.DefaultQueuePair(), file.Root.Span())
	if file.Defaults != nil && file.Defaults.QueuePair != nil {
		if qp := x.queuePair(nil, file.Defaults.QueuePair, place{scope: x.global}); qp != nil {
			x.defaultQueuePair = qp
		}
	}
	x.main = x.module(file, x.global, []string{onDisk(file.Root.Source.Name)})
	x.current = x.main
	x.fileProvider(scenario)
	x.cases(scenario)
	x.roleParams()
	x.clock(scenario)
	x.deterministic(scenario)
	x.reportLong(scenario.Soft.Virtual)
	x.unmeasured()
	x.unusedFragments()
	x.unusedFixtures()
	x.unusedNames()
	for _, path := range sortedKeys(x.libraries) {
		if !standard.Is(path) {
			scenario.Imports = append(scenario.Imports, options.locate(path))
		}
	}
	return scenario
}

func texts(nodes []*syntax.Node) []string {
	list := make([]string, len(nodes))
	for i, node := range nodes {
		list[i] = node.Value
	}
	return list
}

// unusedFragments checks those that nothing in this file uses.
func (x *expander) unusedFragments() {
	x.abstract = true
	for _, fragment := range x.file.Fragments {
		if x.used[fragment] {
			continue
		}
		s := x.global.inner()
		for _, param := range fragment.Params {
			bound := unbound(param)
			if bound.kind == nil {
				bound.mapping, bound.scope = param.Name, x.global
			}
			s.names[param.Name.Value] = bound
		}
		x.timeline = newTimeline()
		x.using = append(x.using, fragment.Name.Value)
		x.stepList(fragment.Steps, s)
		x.using = x.using[:len(x.using)-1]
	}
	x.abstract = false
}

// setKnown gives a variable a value that is known; one that is nil leaves it as it is.
func setKnown[T any](to *T, value any) {
	if known, is := value.(T); is {
		*to = known
	}
}

// known is the value of a scalar that must be known before the run; nil if there is none or it is wrong.
func (d *decoder) known(argument *verb.Argument, node *syntax.Node, s *scope) any {
	if node == nil {
		return nil
	}
	return d.constant(argument.Name, d.scalar(argument, node, place{scope: s}))
}

// constant is the constant that a value must be; nil if it is known only during the run.
func (d *decoder) constant(what string, value *Value) any {
	if value == nil {
		return nil
	}
	known, ok := value.Constant()
	if !ok && len(d.missing) == 0 && !d.abstract {
		d.errors.Report(
			diag.NotConstant, value.Span, "%s must be known before the run, and this is known only while running", what,
		).
			WithHint("use parameters and constants only")
	}
	return known
}

// unusedNames warns about parameters and names of matrices that no expression of the file mentions. To set them has no
// effect, although it looks as if it had.
func (x *expander) unusedNames() {
	if x.options.Wrong || x.errors.Len() > 0 {
		return // what is wrong may be what would mention them
	}
	if defaults := x.file.Root.Get("defaults"); defaults != nil {
		mentionIn(defaults, x.main.global) // perhaps no step takes any of them
	}
	mentioned := x.main.global.mentioned
	params := func(list []*ast.Param, of string) {
		for _, param := range list {
			if name := param.Name; !mentioned[name] {
				x.errors.Report(diag.Unused, name.Span(), "nothing mentions the parameter %q%s", name.Value, of).
					WithHint("its value is $(%s); without a use, leave it out", name.Value)
			}
		}
	}
	params(x.file.Params, "")
	for _, fragment := range x.file.Fragments {
		params(fragment.Params, " of this fragment")
	}
	x.unusedAxes(x.file.Matrix, mentioned)
	for _, written := range x.file.Cases {
		x.unusedAxes(written.Matrix, mentioned)
	}
}

// mentionIn notes all words of all expressions in a part of the file.
func mentionIn(node *syntax.Node, s *scope) {
	pieces, _ := expression.Scan(node.Value)
	for _, piece := range pieces {
		if piece.Expression {
			for word := range expression.Words(piece.Text) {
				s.mention(word)
			}
		}
	}
	for _, pair := range node.Pairs {
		mentionIn(pair.Value, s)
	}
	for _, item := range node.Items {
		mentionIn(item, s)
	}
}

func (x *expander) unusedAxes(m *ast.Matrix, mentioned map[*syntax.Node]bool) {
	if m == nil {
		return
	}
	for _, axis := range m.Axes {
		if name := axis.Name; !mentioned[name] && name.Value != providerAxis {
			x.errors.Report(
				diag.Unused, name.Span(), "nothing mentions %q, so the cases of its values are the same", name.Value,
			).
				WithHint("its value is $(%s); to run a case several times there is --repeat", name.Value)
		}
	}
}
