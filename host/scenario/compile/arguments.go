package compile

import (
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/syntax"
	"rdmarun/host/scenario/verb"
)

// argumentReader gathers the arguments of one step.
type argumentReader struct {
	*decoder
	verb   *verb.Verb
	at     place
	values []*Value
	given  []*syntax.Node // the key of each, nil for none
	// fromDefaults marks those that the file's `defaults` give.
	fromDefaults []bool
	inline       []syntax.Pair // keys of inline data
	// misspelled are arguments that an unknown key may have been meant for, which has been reported.
	misspelled []string
}

// arguments compiles the arguments of a verb, and returns the results that they name.
func (d *decoder) arguments(step *ast.Step, at place) (values []*Value, named []verb.Result) {
	count := len(step.Verb.Arguments)
	r := &argumentReader{
		decoder: d, verb: step.Verb, at: at,
		values: make([]*Value, count), given: make([]*syntax.Node, count), fromDefaults: make([]bool, count),
	}
	body, scope := at.scope.resolve(step.Body)
	switch {
	case body.Kind == syntax.Scalar && r.verb.Scalar != "":
		r.one(r.verb.Argument(r.verb.Scalar), step.Key, body, at)
	case body.Kind == syntax.Mapping:
		r.pairs(body, at.in(scope))
	case r.verb.Scalar == "":
		return nil, nil // the shape check has reported it
	default:
		d.errors.Report(
			diag.WrongShape, body.Span(), "%s wants a value or a mapping, and this is a %s", r.verb.Name, body.Kind,
		)
		return nil, nil
	}
	if i := r.verb.Argument("within"); i >= 0 && step.Within != nil {
		r.one(i, step.Node.Key("within"), step.Within, at)
	}
	r.defaults(step)
	r.check(step.Key)
	r.finish(step.Key)
	if r.verb.Names != nil {
		named = r.verb.Names(r.known())
	}
	return r.values, named
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
		return // a parameter, which gets its value where the fragment is used
	}
	r.errors.Report(
		diag.WrongShape, pair.Value.Span(), "%s is a mapping with more arguments of %s", pair.Key.Value, r.verb.Name,
	)
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

// defaults takes arguments that the step does not have from the file's `defaults`.
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

// groupGiven reports whether one of the arguments of a group has a value.
func (r *argumentReader) groupGiven(group string) bool {
	for i := range r.verb.Arguments {
		if group != "" && r.verb.Arguments[i].Group == group && r.given[i] != nil {
			return true
		}
	}
	return false
}

func (r *argumentReader) inlineArgument() int {
	return slices.IndexFunc(r.verb.Arguments, func(a verb.Argument) bool { return a.Inline })
}

func (r *argumentReader) unknown(key *syntax.Node) {
	known := namesOf(r.verb.Arguments, argumentName)
	if meant := diag.Suggest(key.Value, known); meant != "" {
		r.misspelled = append(r.misspelled, meant)
	}
	if i := r.inlineArgument(); i >= 0 {
		known = append(slices.Delete(known, i, i+1), dataKeys...)
	}
	bad := r.errors.Report(diag.UnknownKey, key.Span(), "%s has no argument %q", r.verb.Name, key.Value)
	if len(known) == 0 {
		bad.WithHint("it takes none")
		return
	}
	bad.WithOneOf(key.Value, known)
}

// finish fills in defaults and reports what is missing.
func (r *argumentReader) finish(key *syntax.Node) {
	if i := r.inlineArgument(); i >= 0 && len(r.inline) > 0 {
		r.given[i] = r.inline[0].Key
		r.values[i] = r.dataForm(r.inline, key.Span(), r.at)
	}
	for i := range r.verb.Arguments {
		argument := &r.verb.Arguments[i]
		switch {
		case r.given[i] != nil:
		case argument.Type == verb.QueuePair:
			r.values[i] = r.defaultQueuePair
		case argument.Default != nil:
			r.values[i] = constant(argument.Default, key.Span())
		case argument.Required && argument.Inline:
			r.errors.Report(diag.MissingKey, key.Span(), "%s needs data", r.verb.Name).
				WithHint("one of text, hex, byte, fields, or repeat with times")
		case argument.Required && slices.Contains(r.misspelled, argument.Name):
		case argument.Required:
			r.errors.Report(diag.MissingKey, key.Span(), "%s needs %q", r.verb.Name, argument.Name).
				WithHint("%s: %s", argument.Name, argument.Doc)
		}
	}
	for _, names := range groupsOf(r.verb.Arguments) {
		given := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
			return r.given[r.verb.Argument(name)] == nil
		})
		switch {
		case len(given) == 0 &&
			!slices.ContainsFunc(names, func(name string) bool { return slices.Contains(r.misspelled, name) }):
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

// keyed compiles a mapping with arguments of its own as keys, and leaves out what is wrong.  no begins the message
// about an unknown key.
func (d *decoder) keyed(
	fields []verb.Argument, node *syntax.Node, at place, no string,
) (names []string, parts []*Value) {
	for _, pair := range node.Pairs {
		field := row(fields, pair.Key.Value, argumentName)
		if field == nil {
			d.errors.Report(diag.UnknownKey, pair.Key.Span(), "%s %q", no, pair.Key.Value).WithOneOf(
				pair.Key.Value, namesOf(fields, argumentName),
			)
		} else if value := d.argument(field, pair.Value, at); value != nil {
			names, parts = append(names, field.Name), append(parts, value)
		}
	}
	return names, parts
}

// byName are values by their names.
func byName(names []string, values []any) map[string]any {
	named := make(map[string]any, len(names))
	for i, name := range names {
		named[name] = values[i]
	}
	return named
}

func argumentName(a *verb.Argument) string { return a.Name }

// optionMapping compiles a mapping with arguments of its own as keys.
func (d *decoder) optionMapping(argument *verb.Argument, node *syntax.Node, at place) *Value {
	return d.optionsOf(argument, argument.Name, node, at)
}

// optionsOf compiles such a mapping, which messages call by a name.
func (d *decoder) optionsOf(argument *verb.Argument, called string, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Mapping {
		return d.refuse(
			diag.WrongShape, node.Span(), diag.ThereAre(namesOf(argument.Fields, argumentName)),
			"%s is a mapping, and this is a %s", argument.Name, node.Kind,
		)
	}
	names, parts := d.keyed(argument.Fields, node, at, argument.Name+" has no key")
	if !d.completeOptions(argument, called, node) {
		return nil
	}
	return d.combined(node.Span(), parts, func(values []any) (any, error) { return byName(names, values), nil })
}

// completeOptions reports whether a mapping has what it needs: what is required, and one of each group.
func (d *decoder) completeOptions(argument *verb.Argument, called string, node *syntax.Node) bool {
	before := d.errors.Len()
	given := func(name string) bool { return node.Get(name) != nil }
	known := namesOf(argument.Fields, argumentName)
	misspelled := func(name string) bool { return diag.Misspelled(name, node.Keys(), known) }
	for _, field := range argument.Fields {
		if field.Required && !given(field.Name) && !misspelled(field.Name) {
			d.errors.Report(diag.MissingKey, node.Span(), "%s needs %q", called, field.Name).WithHint(
				"%s: %s", field.Name, field.Doc,
			)
		}
	}
	members := groupsOf(argument.Fields)
	for _, group := range sortedKeys(members) {
		switch has := slices.DeleteFunc(slices.Clone(members[group]), func(name string) bool { return !given(name) }); {
		case len(has) == 0 && !slices.ContainsFunc(members[group], misspelled):
			d.errors.Report(diag.MissingKey, node.Span(), "%s needs one of %s", called, quotedList(members[group]))
		case len(has) > 1:
			d.errors.Report(
				diag.Conflict, node.Key(has[1]).Span(), "%s has either %s", called, strings.Join(has, " or "),
			)
		}
	}
	return d.errors.Len() == before &&
		!slices.ContainsFunc(node.Keys(), func(key string) bool { return !slices.Contains(known, key) })
}

// groupsOf are the names of arguments of which one must be given, by their groups.
func groupsOf(arguments []verb.Argument) map[string][]string {
	members := make(map[string][]string)
	for i := range arguments {
		if group := arguments[i].Group; group != "" {
			members[group] = append(members[group], arguments[i].Name)
		}
	}
	return members
}

// maxListed bounds a list of mappings; no device takes as many entries.
const maxListed = 1024

// optionList compiles a list of such mappings.  Each must have what is required.
func (d *decoder) optionList(argument *verb.Argument, node *syntax.Node, at place) *Value {
	hint := fmt.Sprintf(
		"[{%s: ..}], with: %s", argument.Fields[0].Name, strings.Join(namesOf(argument.Fields, argumentName), ", "),
	)
	if node = d.shaped(node, &at, syntax.Sequence, 1, hint, "%s is a list of mappings", argument.Name); node == nil {
		return nil
	}
	if len(node.Items) > maxListed {
		return d.refuse(
			diag.OutOfRange, node.Span(), "", "%s has %d entries, and more than %d are none that a device takes",
			argument.Name, len(node.Items), maxListed,
		)
	}
	parts := make([]*Value, 0, len(node.Items))
	for _, item := range node.Items {
		value := d.optionsOf(argument, "an entry of "+argument.Name, item, at)
		if value == nil {
			continue
		}
		parts = append(parts, value)
	}
	return d.combined(node.Span(), parts, func(values []any) (any, error) {
		list := make([]map[string]any, len(values))
		for i, value := range values {
			list[i], _ = value.(map[string]any)
		}
		return list, nil
	})
}

// check asks the verb whether the arguments given go together, as far as they are known.  One of `defaults` that
// means nothing in this step is left out of it.
func (r *argumentReader) check(key *syntax.Node) {
	if r.verb.Check == nil || r.abstract {
		return
	}
	for {
		refusal := r.verb.Check(r.known())
		if refusal == nil || slices.Contains(r.misspelled, refusal.Argument) {
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
	call := (&Call{Verb: r.verb, Arguments: r.values}).known()
	for i, value := range r.values {
		if value == nil {
			call.Deferred[i] = r.given[i] != nil // what was wrong with it is reported already
		}
	}
	return call
}

// wordList compiles a list of words, each once; it may be empty.
func (d *decoder) wordList(argument *verb.Argument, node *syntax.Node, at place) *Value {
	node, at.scope = at.scope.resolve(node)
	if node.Kind != syntax.Sequence {
		example := argument.Words[:min(2, len(argument.Words))]
		if slices.Contains(argument.Words, node.Value) {
			example = []string{node.Value}
		}
		return d.refuse(
			diag.WrongShape, node.Span(), "["+strings.Join(example, ", ")+"]", "%s is a list of words", argument.Name,
		)
	}
	word := &verb.Argument{Name: argument.Name, Type: verb.Word, Words: argument.Words}
	return d.list(node, func(item *syntax.Node) *Value { return d.scalar(word, item, at) },
		func(values []any) (any, error) {
			words := make([]string, len(values))
			for i, value := range values {
				words[i] = value.(string)
				if slices.Contains(words[:i], words[i]) {
					return nil, diag.Wrong(diag.Conflict, argument.Name+" has "+quoted(words[i])+" twice", "")
				}
			}
			return words, nil
		})
}
