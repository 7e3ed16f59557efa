package ast

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
)

func (r *reader) cases(node *syntax.Node) []*Case {
	var cases []*Case
	for _, item := range r.list(node, "cases") {
		if !r.mapping(item, "a case") {
			continue
		}
		r.keys(item, caseKeys)
		c := &Case{
			Name:     r.text(r.required(item, "name", "a case")),
			Tags:     r.words(item.Get("tags"), "tags"),
			Timeout:  item.Get("timeout"),
			Matrix:   r.matrix(item.Get("matrix")),
			Requires: r.words(item.Get("requires"), "requires"),
			XFail:    r.xfail(item.Get("xfail")),

			Thresholds: r.thresholds(item.Get("thresholds")),
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

func (r *reader) xfail(node *syntax.Node) *XFail {
	if node == nil || !r.mapping(node, "xfail") {
		return nil
	}
	r.keys(node, xfailKeys)
	raises := node.Get("raises")
	if raises != nil && r.mapping(raises, "raises") {
		r.keys(raises, raisesKeys)
		if len(raises.Pairs) == 0 {
			r.errors.Report(diag.MissingKey, raises.Span(), "raises says nothing of the failure").WithHint("%s", diag.ThereAre(names(raisesKeys)))
		}
	} else {
		raises = nil
	}
	return &XFail{Node: node, When: r.text(node.Get("when")), Reason: r.text(r.required(node, "reason", "xfail")), Raises: raises}
}
