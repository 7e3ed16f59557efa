package compile

import (
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// argumentReader gathers the arguments of one step.
type argumentReader struct {
	*compiler
	verb   *verb.Verb
	at     place
	values []*Value
	given  []*syntax.Node // the key of each, nil for none
	// fromDefaults tells which were given by the file's `defaults`.
	fromDefaults []bool
	inline       []syntax.Pair // keys of inline data
	layout       verb.FieldLayout
}

// arguments compiles what stands behind a verb.
func (c *compiler) arguments(step *ast.Step, at place) ([]*Value, verb.FieldLayout) {
	r := &argumentReader{
		compiler: c, verb: step.Verb, at: at,
		values: make([]*Value, len(step.Verb.Arguments)),
		given:  make([]*syntax.Node, len(step.Verb.Arguments)),

		fromDefaults: make([]bool, len(step.Verb.Arguments)),
	}
	body, scope := at.scope.resolve(step.Body)
	switch {
	case body.Kind == syntax.Scalar && r.verb.Scalar != "":
		r.one(r.verb.Argument(r.verb.Scalar), step.Key, body, at)
	case body.Kind == syntax.Mapping:
		r.pairs(body, at.in(scope))
	case r.verb.Scalar == "":
		return nil, nil // the shape check has said so
	default:
		c.errors.Report(diag.WrongShape, body.Span(), "%s wants a value or a mapping, and this is a %s", r.verb.Name, body.Kind)
		return nil, nil
	}
	if step.Within != nil {
		if i := r.verb.Argument("within"); i >= 0 {
			r.one(i, step.Node.Key("within"), step.Within, at)
		}
	}
	r.defaults(step)
	r.check(step.Key)
	r.finish(step.Key)
	return r.values, r.layout
}

func (r *argumentReader) pairs(node *syntax.Node, at place) {
	for _, pair := range node.Pairs {
		index := r.verb.Argument(pair.Key.Value)
		switch {
		case index >= 0 && r.verb.Arguments[index].Type == verb.Arguments:
			r.more(pair, at)
		case index >= 0 && !r.verb.Arguments[index].Inline:
			r.one(index, pair.Key, pair.Value, at)
		case isDataKey(pair.Key.Value) && r.inlineArgument() >= 0:
			r.inline = append(r.inline, pair)
		default:
			r.unknown(pair.Key)
		}
	}
}

// more merges a mapping with further arguments.
func (r *argumentReader) more(pair syntax.Pair, at place) {
	node, scope := at.scope.resolve(pair.Value)
	if node.Kind == syntax.Mapping {
		r.pairs(node, at.in(scope))
		return
	}
	if r.abstract {
		return // a parameter whose value the use of the fragment will give
	}
	r.errors.Report(diag.WrongShape, pair.Value.Span(), "%s is a mapping with more arguments of %s", pair.Key.Value, r.verb.Name)
}

func (r *argumentReader) one(index int, key, node *syntax.Node, at place) {
	argument := &r.verb.Arguments[index]
	if earlier := r.given[index]; earlier != nil {
		r.errors.Report(diag.Conflict, key.Span(), "%s is given twice", argument.Name).
			WithHint("also in line %d", earlier.Position.Line)
		return
	}
	r.given[index] = key
	r.values[index] = r.argument(argument, node, at)
}

// defaults takes from the file's `defaults` what the step does not say.
func (r *argumentReader) defaults(step *ast.Step) {
	defaults := r.file.Defaults
	if defaults == nil {
		return
	}
	at := r.at.in(r.global)
	for _, each := range defaults.Verbs {
		if each.Key.Value != r.verb.Name {
			continue
		}
		for _, pair := range each.Value.Pairs {
			index := r.verb.Argument(pair.Key.Value)
			switch {
			case index < 0:
				r.unknown(pair.Key)
			case r.given[index] == nil && !r.groupGiven(r.verb.Arguments[index].Group):
				r.fromDefaults[index] = true
				r.one(index, pair.Key, pair.Value, at)
			}
		}
	}
	if i := r.verb.Argument("within"); i >= 0 && r.given[i] == nil && defaults.Within != nil {
		r.one(i, step.Key, defaults.Within, at)
	}
}

// groupGiven tells whether one of the arguments of a group has a value.
func (r *argumentReader) groupGiven(group string) bool {
	for i := range r.verb.Arguments {
		if group != "" && r.verb.Arguments[i].Group == group && r.given[i] != nil {
			return true
		}
	}
	return false
}

func (r *argumentReader) inlineArgument() int {
	for i := range r.verb.Arguments {
		if r.verb.Arguments[i].Inline {
			return i
		}
	}
	return -1
}

func (r *argumentReader) unknown(key *syntax.Node) {
	var known []string
	for _, argument := range r.verb.Arguments {
		if !argument.Inline {
			known = append(known, argument.Name)
		}
	}
	if r.inlineArgument() >= 0 {
		known = append(known, dataKeys...)
	}
	hint := "it takes none"
	if len(known) > 0 {
		hint = hintOr(diag.DidYouMean(key.Value, known), diag.ThereAre(known))
	}
	r.errors.Report(diag.UnknownKey, key.Span(), "%s has no argument %q", r.verb.Name, key.Value).WithHint("%s", hint)
}
