package compile

import (
	"fmt"
	"slices"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/expression"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// providerAxis is the name in a matrix that chooses the provider: a case of another one is skipped.
const providerAxis = "provider"

// maxCases bounds how many cases a file's matrices make.
const maxCases = 10_000

// combinations lists what a matrix makes, in the order of the file; without a matrix one that is empty.
func (c *compiler) combinations(m *ast.Matrix, s *scope) []combination {
	if m == nil {
		return []combination{nil}
	}
	all := c.product(m.Axes, m.Node.Span(), s, maxCases)
	for _, combo := range all {
		for i := range combo {
			for _, axis := range m.Axes {
				if axis.Name.Value == combo[i].name {
					combo[i].axis = axis.Name
				}
			}
		}
	}
	excluded := make([]map[string]any, len(m.Exclude))
	hits := make([]int, len(m.Exclude))
	for i, item := range m.Exclude {
		excluded[i] = make(map[string]any)
		for _, pair := range item.Pairs {
			if each, ok := c.setting(pair.Key.Value, pair.Value, s); ok {
				excluded[i][pair.Key.Value] = each.value
			}
		}
	}
	left := slices.DeleteFunc(slices.Clone(all), func(combo combination) bool {
		out := false
		for i := range excluded {
			if combo.matches(excluded[i]) {
				hits[i]++
				out = true
			}
		}
		return out
	})
	for i, item := range m.Exclude {
		if hits[i] == 0 && len(all) > 0 {
			c.errors.Report(diag.ExcludesNothing, item.Span(), "this excludes nothing: no combination has these values")
		}
	}
	if len(left) == 0 && len(all) > 0 {
		c.errors.Report(diag.EmptyList, m.Node.Span(), "everything of this matrix is excluded")
	}
	return left
}

// product lists all combinations of lists of values; none after reporting that there are too many.
func (c *compiler) product(axes []ast.Axis, span diag.Span, s *scope, limit int) []combination {
	count := 1
	for _, axis := range axes {
		if count *= len(axis.Values); count > limit {
			c.errors.Report(diag.TooManyCases, span, "these lists have more than %d combinations", limit)
			return nil
		}
	}
	all := []combination{nil}
	for _, axis := range axes {
		values := c.axis(axis, s)
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
func (c *compiler) axis(axis ast.Axis, s *scope) []setting {
	named := *axis.Name
	if !c.checkName(&named) {
		return nil
	}
	var list []setting
	for _, node := range axis.Values {
		each, ok := c.setting(axis.Name.Value, node, s)
		if !ok {
			continue
		}
		if providers := rdmacore.Providers(); axis.Name.Value == providerAxis && !slices.Contains(providers, each.text) {
			c.errors.Report(diag.NotOneOf, node.Span(), "no provider is called %s", quoted(each.text)).
				WithHint("%s", hintOr(diag.DidYouMean(each.text, providers), diag.ThereAre(providers)))
			continue
		}
		if len(list) > 0 && fmt.Sprintf("%T", list[0].value) != fmt.Sprintf("%T", each.value) {
			c.errors.Report(diag.WrongType, node.Span(), "%s is %s, and the first value of %s is %s", quoted(each.text),
				expression.Word(each.value), axis.Name.Value, expression.Word(list[0].value)).
				WithHint("the values of one name have one type")
			continue
		}
		if slices.ContainsFunc(list, func(other setting) bool { return other.value == each.value }) {
			c.errors.Report(diag.NameTaken, node.Span(), "%s stands here twice", quoted(each.text))
			continue
		}
		list = append(list, each)
	}
	return list
}

// setting reads one value: an integer, size, duration, boolean or word, by how it looks.
func (c *compiler) setting(name string, node *syntax.Node, s *scope) (setting, bool) {
	each := setting{name: name, text: node.Value, node: node}
	if expression.Contains(node.Value) {
		known := c.knownIn(&verb.Argument{Name: name, Type: verb.Any}, node, s)
		each.value, each.text = known, textOf(known)
		return each, known != nil
	}
	if node.IsNull() {
		c.errors.Report(diag.WrongType, node.Span(), "a value of %s is missing", name)
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
	if d, bad := parseDuration(node.Value); bad == nil {
		return d
	}
	if b, bad := parseBoolean(node.Value); bad == nil {
		return b
	}
	return node.Value
}

// axisNamed is the name in a matrix whose values the current steps have; nil for any other word.
func (c *compiler) axisNamed(name string) *syntax.Node {
	for _, m := range c.matrices {
		if node := m.Named(name); node != nil {
			return node
		}
	}
	return nil
}

// caseWith is a case whose matrix has a name; nil where none has.
func (c *compiler) caseWith(name string) *ast.Case {
	for _, written := range c.file.Cases {
		if written.Matrix.Named(name) != nil {
			return written
		}
	}
	return nil
}
