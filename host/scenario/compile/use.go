package compile

import (
	"slices"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

// use expands a fragment.
func (c *compiler) use(step *ast.Step, at place) Action {
	fragment, from := c.find(step.Body)
	if fragment == nil {
		return &Block{}
	}
	name := step.Body.Value
	if from != c.main {
		name = from.file.Root.Source.Name + ":" + fragment.Name.Value
	}
	if slices.Contains(c.using, name) {
		path := append(slices.Clone(c.using[slices.Index(c.using, name):]), name)
		c.errors.Report(diag.Recursion, step.Body.Span(), "the fragment %q uses itself: %s", name, strings.Join(path, " -> ")).
			WithHint("`repeat` does steps several times")
		return &Block{}
	}
	c.used[fragment] = true
	u := &Use{Fragment: step.Body.Value}
	inner := from.global.inner()
	c.bindParams(u, step, fragment, at, inner, from.global)
	c.using = append(c.using, name)
	before := c.current
	c.current = from
	u.Steps = c.stepList(fragment.Steps, inner)
	c.current = before
	c.using = c.using[:len(c.using)-1]
	return u
}

func (c *compiler) bindParams(u *Use, step *ast.Step, fragment *ast.Fragment, at place, inner, global *scope) {
	var known []string
	for _, param := range fragment.Params {
		known = append(known, param.Name.Value)
		c.bindParam(u, step, fragment, param, at, inner, global)
	}
	if step.With == nil {
		return
	}
	for _, pair := range step.With.Pairs {
		if !slices.Contains(known, pair.Key.Value) {
			hint := diag.DidYouMean(pair.Key.Value, known)
			if len(known) == 0 {
				hint = "it has none"
			}
			c.errors.Report(diag.UnknownParameter, pair.Key.Span(), "the fragment %q has no parameter %q", u.Fragment, pair.Key.Value).
				WithHint("%s", hintOr(hint, diag.ThereAre(known)))
		}
	}
}

func (c *compiler) bindParam(u *Use, step *ast.Step, fragment *ast.Fragment, param *ast.Param, at place, inner, global *scope) {
	name := param.Name.Value
	node, scope := step.With.Get(name), at.scope
	if node == nil {
		node, scope = param.Default, global
	}
	if node == nil {
		c.errors.Report(diag.MissingParameter, step.Key.Span(), "the fragment %q needs the parameter %q", fragment.Name.Value, name).
			WithHint("with: {%s: ..}", name)
		inner.add(name, paramType(param.Type, nil), nil)
		inner.declaredAt(name, param.Name)
		return
	}
	node, scope = scope.resolve(node)
	if param.Type == "map" {
		if node.Kind != syntax.Mapping && !c.abstract {
			c.errors.Report(diag.WrongShape, node.Span(), "the parameter %q is a mapping, and this is a %s", name, node.Kind)
		}
		inner.addNode(name, bound{node, scope})
		inner.declaredAt(name, param.Name)
		return
	}
	value := c.paramValue(c.paramArgument(param), node, place{scope: scope})
	if value == nil {
		inner.add(name, paramType(param.Type, nil), nil)
		inner.declaredAt(name, param.Name)
		return
	}
	known, constant := value.Constant()
	if text, ok := known.(string); ok && param.Type == "role" && c.role(text) == nil {
		if step.With.Get(name) != nil {
			c.unknownRole(text, value.Span)
		} else {
			c.errors.Report(diag.UnknownRole, step.Body.Span(), "there is no role %q, which this fragment is for unless another is given", text).
				WithHint("with: {%s: ROLE}, which can be %s", name, strings.Join(sortedKeys(c.roles), ", "))
		}
		known = nil
	}
	inner.add(name, paramType(param.Type, known), known)
	inner.declaredAt(name, param.Name)
	if value.Hex {
		inner.writtenInHex(name)
	}
	if word := c.wordOf(node, place{scope: scope}); !constant && word != "" {
		inner.words[name] = word
	}
	u.With = append(u.With, Parameter{name, value})
}
