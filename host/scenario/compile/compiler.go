// Package compile makes a program of a scenario: names are resolved, fragments expanded, expressions
// compiled, and every value that can be known before the run is known.
//
// What a plan holds has been checked, so a run meets only what the world does, never a typing mistake.
package compile

import (
	"path/filepath"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// Options are what a plan depends on besides the file.
type Options struct {
	// Params are values of parameters, by name, as text.  Names that the file does not have are
	// ignored: one command line may run several files.
	Params map[string]string
	// InspectModule looks at a guest's module and lists the functions that it exports; nil leaves modules
	// alone.
	InspectModule func(path string) (map[string]Signature, error)
	// Wrong tells that errors of the file are known already, so that some of it may be missing.
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

// compiler makes a Program of a File.
type compiler struct {
	file    *ast.File
	options Options
	errors  *diag.List

	// roles are those of the file, instances those of its counted roles, by names such as client[2].
	roles, instances map[string]*role
	// main is the file, current the file of the fragment that is being expanded.
	main, current    *module
	libraries        map[string]*module // by path; nil for one that is broken
	defaultQueuePair *Value
	global           *scope
	timeline         *timeline
	facts            *facts
	// using are the fragments being expanded, to see recursion.
	using []string
	used  map[*ast.Fragment]bool
	// branches are those of the parallel steps around the current step, the outermost first; appointments the
	// barriers in them.
	branches     []*branch
	branchCount  int
	appointments []*appointment
	// matrices are those whose values the current steps have.
	matrices []*ast.Matrix
	// around are the steps around the current one and itself, the outermost first; inLoop tells that one of them is a
	// loop whose rounds are timed, in which no other is.
	around []*Step
	inLoop bool
	// unmet are thresholds that nothing is measured for, nil for one that something is; choices are the labels, by metric,
	// that any step has, with their values.
	unmet   map[*ast.Threshold]*unmet
	choices map[string]map[string]map[string]bool
	// steps counts expanded steps.
	steps int
	// abstract is set while a fragment is checked that nothing uses: what its steps would find is
	// not known.
	abstract bool
	missing  []string
	// functions are those of the module of the last guest read, nil when they are not known.
	functions map[string]Signature
}

// maxSteps bounds how far fragments expand; ten thousand steps are a long scenario.
const maxSteps = 100_000

// Compile makes the program of a file.  Diagnostics go to errors; a program that comes with any must not
// run.
func Compile(file *ast.File, options Options, errors *diag.List) *Program {
	c := &compiler{
		file: file, options: options, errors: errors,
		roles:     make(map[string]*role),
		instances: make(map[string]*role),
		libraries: make(map[string]*module),
		used:      make(map[*ast.Fragment]bool),
		unmet:     make(map[*ast.Threshold]*unmet),
		choices:   make(map[string]map[string]map[string]bool),
		timeline:  newTimeline(),
		facts:     newFacts(),
		global:    newScope(),
	}
	p := &Program{File: file.Root.Source.Name}
	p.Name = filepath.Base(p.File)
	if file.Name != nil {
		p.Name = file.Name.Value
	}
	if file.Doc != nil {
		p.Doc = file.Doc.Value
	}
	p.Tags = texts(file.Tags)
	p.Params, p.Constants = c.params()
	p.Missing = c.missing
	c.defaultQueuePair = constant(verb.DefaultQueuePair(), file.Root.Span())
	if file.Defaults != nil && file.Defaults.QueuePair != nil {
		if qp := c.queuePair(c.defaultQueuePair, file.Defaults.QueuePair, place{scope: c.global}); qp != nil {
			c.defaultQueuePair = qp
		}
	}
	c.main = c.module(file, c.global, []string{onDisk(file.Root.Source.Name)})
	c.current = c.main
	c.cases(p)
	c.roleParams()
	c.soft(p)
	c.unmeasured()
	c.unusedFragments()
	c.unusedNames()
	return p
}

func texts(nodes []*syntax.Node) []string {
	list := make([]string, len(nodes))
	for i, node := range nodes {
		list[i] = node.Value
	}
	return list
}

// unusedFragments checks those that nothing in this file uses.
func (c *compiler) unusedFragments() {
	c.abstract = true
	for _, fragment := range c.file.Fragments {
		if c.used[fragment] {
			continue
		}
		s := c.global.inner()
		for _, param := range fragment.Params {
			if param.Type == "map" {
				s.addNode(param.Name.Value, bound{param.Name, c.global})
				s.declaredAt(param.Name.Value, param.Name)
				continue
			}
			s.add(param.Name.Value, paramType(param.Type, nil), nil)
			s.declaredAt(param.Name.Value, param.Name)
		}
		c.timeline = newTimeline()
		c.using = append(c.using, fragment.Name.Value)
		c.stepList(fragment.Steps, s)
		c.using = c.using[:len(c.using)-1]
	}
	c.abstract = false
}

// knownScalar is a scalar whose value is known before the run; nil when there is none or it is wrong.
func (c *compiler) knownScalar(argument *verb.Argument, node *syntax.Node) any {
	return c.knownIn(argument, node, c.global)
}

// knownIn is knownScalar in another scope.
func (c *compiler) knownIn(argument *verb.Argument, node *syntax.Node, s *scope) any {
	if node == nil {
		return nil
	}
	value := c.scalar(argument, node, place{scope: s})
	if value == nil {
		return nil
	}
	known, ok := value.Constant()
	if !ok && len(c.missing) == 0 {
		c.errors.Report(diag.NotConstant, value.Span, "%s must be known before the run, and this is known only while running", argument.Name).
			WithHint("only parameters and constants can stand here")
	}
	return known
}

// unusedNames warns of parameters and names of matrices that no expression of the file mentions: whoever sets them, or
// reads the cases that they make, believes that they do something.
func (c *compiler) unusedNames() {
	if c.options.Wrong || c.errors.Len() > 0 {
		return // what is wrong may be what would mention them
	}
	if defaults := c.file.Root.Get("defaults"); defaults != nil {
		mentionIn(defaults, c.main.global) // perhaps no step takes any of them
	}
	mentioned := c.main.global.mentioned
	params := func(list []*ast.Param, of string) {
		for _, param := range list {
			if name := param.Name; !mentioned[name] {
				c.errors.Report(diag.Unused, name.Span(), "nothing mentions the parameter %q%s", name.Value, of).
					WithHint("its value is $(%s); without a use, leave it out", name.Value)
			}
		}
	}
	params(c.file.Params, "")
	for _, fragment := range c.file.Fragments {
		params(fragment.Params, " of this fragment")
	}
	c.unusedAxes(c.file.Matrix, mentioned)
	for _, written := range c.file.Cases {
		c.unusedAxes(written.Matrix, mentioned)
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

func (c *compiler) unusedAxes(m *ast.Matrix, mentioned map[*syntax.Node]bool) {
	if m == nil {
		return
	}
	for _, axis := range m.Axes {
		if name := axis.Name; !mentioned[name] && name.Value != providerAxis {
			c.errors.Report(diag.Unused, name.Span(), "nothing mentions %q, so the cases of its values are the same", name.Value).
				WithHint("its value is $(%s); to run a case several times there is --repeat", name.Value)
		}
	}
}
