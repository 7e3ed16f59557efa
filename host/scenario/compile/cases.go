package compile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/quantity"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// cases compiles every case with every combination of the matrices.  Each case starts with what the setup has made.
func (x *expander) cases(scenario *Scenario) {
	taken := make(map[string]bool)
	for _, combo := range x.combinations(x.file.Matrix, x.global) {
		global := x.global
		x.current.global = global.inner()
		x.global = x.current.global
		combo.addTo(x.global)
		x.matrices = []*ast.Matrix{x.file.Matrix}
		x.casesOf(scenario, combo, taken)
		x.matrices = nil
		x.global, x.current.global = global, global
	}
}

// casesOf compiles the cases of one combination of the file's matrix.
func (x *expander) casesOf(scenario *Scenario, combo combination, taken map[string]bool) {
	x.timeline = newTimeline()
	x.roles, x.counted = make(map[string]*role), false
	roles := x.compileRoles()
	for _, r := range roles {
		scenario.Guests, scenario.Programs = scenario.Guests || r.Guest != nil, scenario.Programs || r.Program != nil
	}
	if scenario.Roles == nil {
		scenario.Roles = roles
	}
	surroundings := sync.OnceValue(func() string { return x.surroundings(roles, scenario.Params, combo) })
	requires := x.requirements(x.file.Requires, x.global)
	x.facts = newFacts()
	x.compiled = make(map[*ast.Fixture]*fixture)
	x.fixtures = nil
	x.ownFixtures()
	fixtures := x.needs(x.file.Needs, nil)
	x.have(fixtures)
	setup := x.stepList(x.file.Setup, x.global)
	shared := x.facts
	start := x.timeline
	timeout := x.timeout(x.file.Timeout, defaultTimeout, x.global)
	stall := x.timeout(x.file.Stall, 0, x.global)
	merged := start.clone()
	first := len(scenario.Cases)
	for _, written := range x.written(scenario) {
		for _, own := range x.combinations(written.Matrix, x.global) {
			scope := x.global.inner()
			own.addTo(scope)
			whole := append(slices.Clone(combo), own...)
			compiled := &Case{
				Tags:      append(texts(written.Tags), scenario.Tags...),
				Roles:     roles,
				Constants: slices.Clone(scenario.Params),
				Timeout:   x.timeout(written.Timeout, timeout, scope),
				Stall:     stall,
				Requires:  append(slices.Clone(requires), x.requirements(written.Requires, scope)...),
				XFail:     x.xfail(written.XFail, scope),
				Setup:     setup,
			}
			for _, each := range whole {
				compiled.Constants = append(compiled.Constants, Binding{each.name, each.text, each.value})
				if each.name == providerAxis {
					compiled.Provider = each.text
				}
			}
			x.name(scenario, compiled, written.Name, whole, scope)
			if taken[compiled.ID] {
				x.errors.Report(diag.NameTaken, written.Name.Span(), "there is a case %q already", written.Name.Value).
					WithHint("choose another name; results are compared by it")
			}
			taken[compiled.ID] = true
			if len(scenario.Cases) >= maxCases {
				x.errors.Report(diag.TooManyCases, x.file.Root.Span(), "the file has more than %d cases", maxCases)
				return
			}
			x.timeline = start.clone()
			x.facts = shared.clone()
			all := x.needs(written.Needs, fixtures)
			x.have(all[len(fixtures):])
			compiled.Fixtures = programs(all)
			x.family(compiled, first+1, surroundings) // a number of this combination
			x.matrices = append(x.matrices, written.Matrix)
			compiled.Steps = x.stepList(written.Steps, scope)
			x.matrices = x.matrices[:len(x.matrices)-1]
			x.lintCase()
			compiled.Needs, compiled.Meetings = x.facts.needs(), x.facts.meetings()
			x.lintMeetings(scenario, roles, compiled.Meetings)
			compiled.Thresholds = x.thresholds(written, scope)
			x.lintTimeout(compiled)
			merged.merge(x.timeline)
			scenario.Cases = append(scenario.Cases, compiled)
		}
	}
	x.timeline = merged
	x.facts = newFacts()
	finally := x.stepList(x.file.Finally, x.global)
	for _, compiled := range scenario.Cases[first:] {
		compiled.Finally = finally
	}
}

// written lists the file's cases; `steps` is one without a name of its own.
func (x *expander) written(scenario *Scenario) []*ast.Case {
	if x.file.Steps == nil {
		return x.file.Cases
	}
	return append([]*ast.Case{{Steps: x.file.Steps}}, x.file.Cases...)
}

func (d *decoder) timeout(node *syntax.Node, otherwise time.Duration, s *scope) time.Duration {
	argument := &verb.Argument{Name: "a timeout", Type: verb.Duration, Min: 1, Max: maxDuration}
	setKnown(&otherwise, d.known(argument, node, s))
	return otherwise
}

// providerAxis is the name in a matrix that chooses the provider: a case of another one is skipped.
const providerAxis = "provider"

// maxCases bounds how many cases a file's matrices make.
const maxCases = 10_000

// combinations lists what a matrix makes, in the order of the file; without a matrix one that is empty.
func (d *decoder) combinations(m *ast.Matrix, s *scope) []combination {
	if m == nil {
		return []combination{nil}
	}
	all := d.product(m.Axes, m.Node.Span(), s, maxCases)
	left := slices.Clone(all)
	for _, item := range m.Exclude {
		values := make(map[string]any)
		for _, pair := range item.Pairs {
			if each, ok := d.setting(pair.Key.Value, pair.Value, s); ok {
				values[pair.Key.Value] = each.value
			}
		}
		excluded := func(combo combination) bool { return combo.matches(values) }
		if len(all) > 0 && !slices.ContainsFunc(all, excluded) {
			d.errors.Report(diag.ExcludesNothing, item.Span(), "this excludes nothing: no combination has these values")
		}
		left = slices.DeleteFunc(left, excluded)
	}
	if len(left) == 0 && len(all) > 0 {
		d.errors.Report(diag.EmptyList, m.Node.Span(), "everything of this matrix is excluded")
	}
	return left
}

// product lists all combinations of lists of values; none after reporting that there are too many.
func (d *decoder) product(axes []ast.Axis, span diag.Span, s *scope, limit int) []combination {
	count := 1
	for _, axis := range axes {
		if count *= len(axis.Values); count > limit {
			d.errors.Report(diag.TooManyCases, span, "these lists have more than %d combinations", limit)
			return nil
		}
	}
	all := []combination{nil}
	for _, axis := range axes {
		values := d.axis(axis, s)
		var longer []combination
		for _, begun := range all {
			for _, each := range values {
				longer = append(longer, append(slices.Clone(begun), each))
			}
		}
		all = longer
	}
	return all
}

// axis reads the values of one name: all of one type, none twice.
func (d *decoder) axis(axis ast.Axis, s *scope) []setting {
	named := *axis.Name
	if !d.checkName(&named) {
		return nil
	}
	var list []setting
	for _, node := range axis.Values {
		each, ok := d.setting(axis.Name.Value, node, s)
		if !ok {
			continue
		}
		each.axis = axis.Name
		if providers := rdmacore.Providers(); axis.Name.Value == providerAxis &&
			!slices.Contains(providers, each.text) {
			d.errors.Report(diag.NotOneOf, node.Span(), "no provider is called %s", quoted(each.text)).
				WithOneOf(each.text, providers)
			continue
		}
		if len(list) > 0 && fmt.Sprintf("%T", list[0].value) != fmt.Sprintf("%T", each.value) {
			d.errors.Report(diag.WrongType, node.Span(), "%s is %s, and the first value of %s is %s", quoted(each.text),
				expression.Word(each.value), axis.Name.Value, expression.Word(list[0].value)).
				WithHint("the values of one name have one type")
			continue
		}
		if slices.ContainsFunc(list, func(other setting) bool { return other.value == each.value }) {
			d.errors.Report(diag.NameTaken, node.Span(), "%s occurs twice", quoted(each.text))
			continue
		}
		list = append(list, each)
	}
	return list
}

// setting reads one value: an integer, size, duration, boolean or word, by how it looks.
func (d *decoder) setting(name string, node *syntax.Node, s *scope) (setting, bool) {
	each := setting{name: name, text: node.Value, node: node}
	if expression.Contains(node.Value) {
		known := d.known(&verb.Argument{Name: name, Type: verb.Any}, node, s)
		each.value, each.text = known, textOf(known)
		return each, known != nil
	}
	if node.IsNull() {
		d.errors.Report(diag.WrongType, node.Span(), "a value of %s is missing", name)
		return each, false
	}
	each.value = inferred(node)
	return each, true
}

// inferred reads a scalar as what it looks like.
func inferred(node *syntax.Node) any {
	if node.Style != syntax.Plain {
		return node.Value
	}
	if n, bad := parseNumber(node.Value); bad == nil {
		return n
	}
	if n, bad := parseSize(node.Value); bad == nil {
		return n
	}
	if d, bad := quantity.ParseTime(node.Value); bad == nil {
		return d
	}
	if b, bad := parseBoolean(node.Value); bad == nil {
		return b
	}
	return node.Value
}

// axisNamed is the key of a name in a matrix around the current steps; nil for any other word.
func (rs *resolver) axisNamed(name string) *syntax.Node {
	for _, m := range rs.matrices {
		if node := m.Named(name); node != nil {
			return node
		}
	}
	return nil
}

// caseWith is a case with a name in its matrix; nil if there is none.
func (rs *resolver) caseWith(name string) *ast.Case {
	for _, written := range rs.file.Cases {
		if written.Matrix.Named(name) != nil {
			return written
		}
	}
	return nil
}

// setting is one name of a matrix or a for_each with one of its values.
type setting struct {
	name  string
	text  string // as the file has it, for ids
	value any
	node  *syntax.Node
	axis  *syntax.Node // the name
}

// combination is one value for each name.
type combination []setting

// id is the combination as part of a case's id.
func (combo combination) id() string {
	words := make([]string, len(combo))
	for i, each := range combo {
		words[i] = each.name + "=" + each.text
	}
	return strings.Join(words, ",")
}

// addTo declares the names in a scope.
func (combo combination) addTo(s *scope) {
	for _, each := range combo {
		s.names[each.name] = name{
			kind: expression.TypeOf(each.value), value: each.value, hex: hexWritten(each.text), declared: each.axis,
			show: func(any) string { return each.text },
		}
	}
}

func (combo combination) matches(values map[string]any) bool {
	for _, each := range combo {
		if want, named := values[each.name]; named && want != each.value {
			return false
		}
	}
	return true
}

// name gives a case its name and its id.  The id has no values in the name, and all values of the matrices
// behind it: FILE::remote key violation[bad=past_end].  The name has those behind it that it does not show.
func (x *expander) name(scenario *Scenario, compiled *Case, node *syntax.Node, combo combination, s *scope) {
	compiled.ID, compiled.Name = scenario.File, scenario.Name
	if node != nil {
		compiled.ID += "::" + label(node.Value)
	} else {
		node = x.file.Name // the case is the file, and its name may contain values of the matrix
	}
	if node != nil {
		compiled.Name = node.Value
		text := &verb.Argument{Name: "name", Type: verb.Text, Message: true}
		setKnown(&compiled.Name, x.known(text, node, s))
	}
	if len(combo) > 0 {
		compiled.ID += "[" + combo.id() + "]"
	}
	if unshown := combo.unshown(node); len(unshown) > 0 {
		compiled.Name += "[" + unshown.id() + "]"
	}
}

// unshown are the settings that a name does not show as they are.  A name shows what is computed from one, $(n + 3),
// and the id has n alone.
func (combo combination) unshown(name *syntax.Node) combination {
	said := make(map[string]bool)
	if name != nil {
		pieces, _ := expression.Scan(name.Value)
		for _, piece := range pieces {
			if piece.Expression {
				said[strings.TrimSpace(piece.Text)] = true
			}
		}
	}
	var list combination
	for _, each := range combo {
		if !said[each.name] {
			list = append(list, each)
		}
	}
	return list
}

// gap stands for an expression that is cut out of a name.
const gap = "\x00"

var (
	// stuck is an expression with what it is joined to and means nothing without it: the - of ping-$(i), the KiB of
	// $(n)KiB.
	stuck = regexp.MustCompile(`[=:%/+_-]*` + gap + `(?:[\pL\pN_=%/+-]|` + gap + `|[.:][\pL\pN_` + gap + `])*`)
	// empty are brackets and quotes around nothing.
	empty = regexp.MustCompile(`\(\s*\)|\[\s*\]|\{\s*\}|""|\'\'`)
	// before and behind are spaces where none belongs, doubled is a mark that ends nothing.
	before  = regexp.MustCompile(`\s+([,;:.!?)\]}])`)
	behind  = regexp.MustCompile(`([(\[{])[\s,;:]+`)
	doubled = regexp.MustCompile(`[,;:]\s*([,;:.)\]}])`)
)

// label is a name without its expressions and what made sense with them alone: the same for all their values.
func label(name string) string {
	var text strings.Builder
	pieces, _ := expression.Scan(name)
	if len(pieces) == 1 && !pieces[0].Expression {
		return strings.Join(strings.Fields(name), " ")
	}
	for _, piece := range pieces {
		if piece.Expression {
			text.WriteString(gap)
		} else {
			text.WriteString(strings.ReplaceAll(piece.Text, gap, ""))
		}
	}
	left := stuck.ReplaceAllString(text.String(), "")
	if strings.TrimSpace(left) == "" {
		left = strings.ReplaceAll(text.String(), gap, "") // for example a unit alone
	}
	for tidy := ""; tidy != left; {
		tidy = left
		for _, each := range []*regexp.Regexp{before, behind, doubled} {
			left = each.ReplaceAllString(left, "$1")
		}
		left = empty.ReplaceAllString(left, "")
	}
	return strings.Trim(strings.Join(strings.Fields(left), " "), " ,;:-=")
}
