package compile

import (
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

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
