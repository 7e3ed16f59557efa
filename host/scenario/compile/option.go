package compile

import (
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// optionMapping compiles a mapping whose keys are arguments of their own.
func (r *argumentReader) optionMapping(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping {
		r.errors.Report(diag.WrongShape, node.Span(), "%s is a mapping, and this is a %s", argument.Name, node.Kind).
			WithHint("%s", diag.ThereAre(fieldNames(argument)))
		return nil
	}
	var names []string
	var parts []*Value
	for _, pair := range node.Pairs {
		field := fieldOf(argument, pair.Key.Value)
		if field == nil {
			r.errors.Report(diag.UnknownKey, pair.Key.Span(), "%s has no key %q", argument.Name, pair.Key.Value).
				WithHint("%s", hintOr(diag.DidYouMean(pair.Key.Value, fieldNames(argument)), diag.ThereAre(fieldNames(argument))))
			continue
		}
		if value := r.argument(field, pair.Value, at); value != nil {
			names, parts = append(names, field.Name), append(parts, value)
		}
	}
	return r.combined(node.Span(), parts, func(values []any) (any, error) {
		options := make(map[string]any, len(values))
		for i, value := range values {
			options[names[i]] = value
		}
		return options, nil
	})
}

// mostListed bounds a list of mappings; no device takes as many entries.
const mostListed = 1024

// optionList compiles a list of such mappings, in each of which what is required must stand.
func (r *argumentReader) optionList(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Sequence || len(node.Items) == 0 {
		r.errors.Report(diag.WrongShape, node.Span(), "%s is a list of mappings", argument.Name).
			WithHint("[{%s: ..}], with: %s", argument.Fields[0].Name, strings.Join(fieldNames(argument), ", "))
		return nil
	}
	if len(node.Items) > mostListed {
		r.errors.Report(diag.OutOfRange, node.Span(), "%s has %d entries, and more than %d are none that a device takes", argument.Name, len(node.Items), mostListed)
		return nil
	}
	parts := make([]*Value, 0, len(node.Items))
	for _, item := range node.Items {
		value := r.optionMapping(argument, item, at)
		if value == nil {
			continue
		}
		for _, field := range argument.Fields {
			if resolved, _ := at.scope.resolve(item); field.Required && resolved.Get(field.Name) == nil {
				r.errors.Report(diag.MissingKey, item.Span(), "an entry of %s needs %q", argument.Name, field.Name).
					WithHint("%s: %s", field.Name, field.Doc)
			}
		}
		parts = append(parts, value)
	}
	return r.combined(node.Span(), parts, func(values []any) (any, error) {
		list := make([]map[string]any, len(values))
		for i, value := range values {
			list[i], _ = value.(map[string]any)
		}
		return list, nil
	})
}

func fieldOf(argument *verb.Argument, name string) *verb.Argument {
	for i := range argument.Fields {
		if argument.Fields[i].Name == name {
			return &argument.Fields[i]
		}
	}
	return nil
}

func fieldNames(argument *verb.Argument) []string {
	names := make([]string, len(argument.Fields))
	for i := range argument.Fields {
		names[i] = argument.Fields[i].Name
	}
	return names
}

// check asks the verb whether the arguments given go together, as far as they are known.  One of `defaults` that
// means nothing in this step is left out of it.
func (r *argumentReader) check(key *syntax.Node) {
	if r.verb.Check == nil || r.abstract {
		return
	}
	for {
		refusal := r.verb.Check(r.known())
		if refusal == nil {
			return
		}
		i := r.verb.Argument(refusal.Argument)
		if refusal.Meaningless && i >= 0 && r.fromDefaults[i] && r.values[i] != nil {
			r.values[i], r.given[i] = nil, nil
			continue
		}
		span, message := key.Span(), refusal.Argument+": "+refusal.Message
		if i >= 0 && r.values[i] != nil {
			span = r.values[i].Span
		}
		if i >= 0 && refusal.Meaningless && r.given[i] != nil {
			span, message = r.given[i].Span(), refusal.Argument+" "+refusal.Message
		}
		r.errors.Report(diag.Conflict, span, "%s", message).WithHint("%s", refusal.Hint)
		return
	}
}

// known is the call with those of its values that are known.
func (r *argumentReader) known() *verb.Call {
	call := &verb.Call{Verb: r.verb, Arguments: make([]any, len(r.values)), Later: make([]bool, len(r.values))}
	for i, value := range r.values {
		if value == nil {
			call.Later[i] = r.given[i] != nil // what was wrong with it is reported already
			continue
		}
		if known, ok := value.Constant(); ok {
			call.Arguments[i] = known
		} else {
			call.Later[i] = true
		}
	}
	return call
}
