package plan

import (
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/shape"
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
func (c *compiler) arguments(step *shape.Step, at place) ([]*Value, verb.FieldLayout) {
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
func (r *argumentReader) defaults(step *shape.Step) {
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

func (r *argumentReader) argument(argument *verb.Argument, node *syntax.Node, at place) *Value {
	switch argument.Type {
	case verb.Buffer:
		return r.bufferName(argument, node, at)
	case verb.Content:
		return r.content(argument, node, at)
	case verb.Data:
		return r.data(argument.Name, node, at)
	case verb.Endpoint:
		return r.endpoint(argument, node, at)
	case verb.Peer:
		return r.peer(argument, node, at)
	case verb.Remote:
		return r.remote(argument, node, at)
	case verb.QueuePair:
		return r.queuePair(r.defaultQueuePair, node, at)
	case verb.Role:
		return r.roleName(argument, node, at)
	case verb.FaultName:
		return r.faultName(argument, node, at)
	case verb.Domain:
		return r.objectName(argument, verb.NewDomain, "alloc_pd", node, at)
	case verb.Queue:
		return r.objectName(argument, verb.NewQueue, "create_cq", node, at)
	case verb.Roles:
		return r.roleList(argument, node, at)
	case verb.Rights:
		return r.rights(argument, node)
	case verb.Condition:
		return r.conditionArgument(argument, node, at)
	case verb.Sizes:
		return r.sizes(argument, node, at)
	case verb.Options:
		return r.optionMapping(argument, node, at)
	case verb.Layout:
		value, layout := r.compiler.layout(node)
		r.layout = layout
		return value
	}
	return r.scalar(argument, node, at)
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
	r.errors.Report(diag.UnknownKey, key.Span(), "%s has no argument %q", r.verb.Name, key.Value).
		WithHint("%s", hintOr(diag.DidYouMean(key.Value, known), "there are: "+strings.Join(known, ", ")))
}

// finish fills in defaults and reports what is missing.
func (r *argumentReader) finish(key *syntax.Node) {
	if i := r.inlineArgument(); i >= 0 && len(r.inline) > 0 {
		r.given[i] = r.inline[0].Key
		r.values[i] = r.dataForm(r.inline, key.Span(), r.at)
	}
	groups := make(map[string][]string)
	members := make(map[string][]string)
	for i := range r.verb.Arguments {
		argument := &r.verb.Arguments[i]
		if argument.Group != "" {
			members[argument.Group] = append(members[argument.Group], argument.Name)
			if r.given[i] != nil {
				groups[argument.Group] = append(groups[argument.Group], argument.Name)
			}
		}
		switch {
		case r.given[i] != nil:
		case argument.Type == verb.QueuePair:
			r.values[i] = r.defaultQueuePair
		case argument.Default != nil:
			r.values[i] = constant(argument.Default, key.Span())
		case argument.Required && argument.Inline:
			r.errors.Report(diag.MissingKey, key.Span(), "%s needs data", r.verb.Name).
				WithHint("one of text, hex, byte, fields, or repeat with times")
		case argument.Required:
			r.errors.Report(diag.MissingKey, key.Span(), "%s needs %q", r.verb.Name, argument.Name).
				WithHint("%s: %s", argument.Name, argument.Doc)
		}
	}
	for group, names := range members {
		switch given := groups[group]; {
		case len(given) == 0:
			r.errors.Report(diag.MissingKey, key.Span(), "%s needs one of %s", r.verb.Name, quotedList(names))
		case len(given) > 1:
			second := r.given[r.verb.Argument(given[1])]
			r.errors.Report(diag.Conflict, second.Span(), "%s has either %s", r.verb.Name, strings.Join(given, " or "))
		}
	}
}

func quotedList(names []string) string {
	quotedNames := make([]string, len(names))
	for i, name := range names {
		quotedNames[i] = quoted(name)
	}
	return strings.Join(quotedNames, ", ")
}
