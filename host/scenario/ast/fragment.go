package ast

import (
	"rdmarun/host/scenario/syntax"
)

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
