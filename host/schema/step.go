package schema

import (
	"fmt"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/verb"
)

// loops stand around the steps of `do`, or around the one other action of their step.
var loops = []string{"repeat", "for_each"}

// wordSets are the definitions of matchers of words, by the words: many verbs have results of the same words.
type wordSets struct {
	definitions object
	names       map[string]string
}

// matched is the matcher of the words of a result.
func (s *wordSets) matched(result *verb.Result) object {
	set := strings.Join(result.Words, " ")
	if s.names[set] == "" {
		name := "match_" + result.Name
		for n := 2; s.definitions[name] != nil; n++ {
			name = fmt.Sprintf("match_%s_%d", result.Name, n)
		}
		s.names[set] = name
		s.definitions["word_"+name] = words(result.Words, false)
		s.definitions[name] = matching(ref("word_" + name))
	}
	return ref(s.names[set])
}

// step is one step: one action, and the modifiers that belong to it.
func step(table *verb.Table, sets *wordSets) object {
	types := object{
		"do": ref("steps"), "parallel": ref("steps"), "took": ref("took"), "expect": object{"anyOf": []any{object{"type": "object"}, object{"const": ast.AnyResult}}}, "with": object{"type": "object"},
		"name": scalar(), "role": scalar(), "if": scalar(), "as": scalar(), "within": ref("duration"), "timeout": ref("duration"),
		"repeat": ref("integer"), "use": scalar(), "barrier": scalar(), "of": listOf(scalar()), "args": list(), "function": scalar(),
		"for_each": object{"type": "object", "minProperties": 1, "propertyNames": name(), "additionalProperties": listOf(scalar())},
		"guest":    words(ast.GuestActions, false), "leftovers": object{"enum": []string{"ignore"}},
		"tags":  object{"anyOf": []any{listOf(scalar()), object{"type": "object", "additionalProperties": scalar()}}},
		"xfail": ref("xfail"),
	}
	schema := mapping("One step: an action, and what modifies it.", append(ast.Keys("action"), ast.Keys("step")...), types)
	properties := schema["properties"].(object)
	one := []any{require("do")}
	for _, action := range ast.Keys("action") {
		if action.Name != loops[0] && action.Name != loops[1] {
			one = append(one, require(action.Name))
		}
	}
	// What follows of a key is looked at where the key is, and nowhere else.
	follows := modifierRules(table)
	for _, v := range table.Verbs() {
		properties[v.Name] = verbSchema(v)
		one = append(one, require(v.Name))
		follows[v.Name] = expectation(v, sets)
	}
	guest := verb.GuestResult()
	guest.Results = append(guest.Results, verb.GuestCallResult().Results...)
	follows["guest"] = object{"allOf": []any{expectation(guest, sets), when(object{"properties": object{"guest": object{"const": "call"}}}, require("function"))}}
	schema["oneOf"], schema["not"], schema["dependentSchemas"] = one, require(loops...), follows
	return schema
}

// modifierRules say beside what a modifier can stand.
func modifierRules(table *verb.Table) object {
	rules := object{"barrier": require("of")}
	others := []string{"do"}
	for _, action := range ast.Keys("action") {
		others = append(others, action.Name)
	}
	waiting := []any{}
	for _, v := range table.Verbs() {
		if v.Waits {
			waiting = append(waiting, require(v.Name))
		}
	}
	for _, modifier := range ast.Keys("step") {
		keys, verbs, all := ast.Beside(modifier.Name)
		has := func(name string) bool {
			for _, key := range keys {
				if key == name {
					return true
				}
			}
			return false
		}
		allowed, refused := []any{}, []any{}
		for _, name := range others {
			isLoop := name == loops[0] || name == loops[1]
			switch {
			case has(name):
				allowed = append(allowed, require(name))
			case !isLoop: // a loop's steps are those of `do`, or the action beside it
				refused = append(refused, require(name))
			}
		}
		switch {
		case all, modifier.Name == "do":
		case modifier.Name == "within":
			rules["within"] = object{"anyOf": append(allowed, waiting...)}
		case modifier.Name == "as": // which names the counter of a repeat, whatever it repeats
			rules["as"] = when(object{"not": require("repeat")}, object{"not": object{"anyOf": refused}})
		case verbs && len(refused) > 0:
			rules[modifier.Name] = object{"not": object{"anyOf": refused}}
		case modifier.Name == "function":
			rules["function"] = object{"required": []string{"guest"}, "properties": object{"guest": object{"const": "call"}}}
		case !verbs:
			rules[modifier.Name] = object{"anyOf": allowed}
		}
	}
	return rules
}

func when(condition, then object) object { return object{"if": condition, "then": then} }

// expectation says what `expect` beside an action can name.
func expectation(v *verb.Verb, sets *wordSets) object {
	properties := object{}
	for _, result := range v.Results {
		properties[result.Name] = documented(sets.field(&result), result.Doc)
	}
	if v.CanFail() {
		properties[compile.Errno] = documented(matched("errno"), "of a call that must fail")
	}
	if v.Waits {
		properties[compile.None] = object{"description": "true: nothing may come", "type": []string{"boolean", "string"}}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	for i := range v.Arguments {
		if v.Arguments[i].Type == verb.Layout {
			schema["additionalProperties"] = matched("integer") // the step names its fields
		}
	}
	return object{"properties": object{"expect": object{"anyOf": []any{schema, object{"const": ast.AnyResult}}}}}
}

func (s *wordSets) field(result *verb.Result) object {
	if len(result.Words) > 0 {
		return s.matched(result)
	}
	switch result.Type {
	case verb.Integer, verb.Unsigned, verb.Size, verb.Duration, verb.Boolean, verb.Data, verb.Status:
		return matched(typeName(result.Type))
	}
	return matched("text")
}

func verbSchema(v *verb.Verb) object {
	doc := v.Doc
	if v.Manual != "" {
		doc += "  See " + v.Manual + "."
	}
	arguments := object{"type": "object", "additionalProperties": false}
	properties := object{}
	var groups = make(map[string][]string)
	for _, argument := range v.Arguments {
		if argument.Group != "" {
			groups[argument.Group] = append(groups[argument.Group], argument.Name)
		}
		if argument.Inline {
			for _, form := range compile.DataForms() {
				properties[form.Name] = documented(dataForm(form.Name), form.Doc)
			}
			arguments["oneOf"] = dataForms()
			continue
		}
		properties[argument.Name] = documented(argumentSchema(&argument), argument.Doc)
	}
	arguments["properties"] = properties
	var both []any
	for _, argument := range v.Arguments {
		members := groups[argument.Group]
		for i, other := range members {
			if argument.Name == other && i > 0 {
				for _, earlier := range members[:i] {
					both = append(both, require(earlier, other))
				}
			}
		}
	}
	if both != nil {
		arguments["not"] = object{"anyOf": both}
	}
	if v.Scalar == "" {
		return documented(arguments, doc)
	}
	return object{"description": doc, "anyOf": []any{arguments, argumentSchema(&v.Arguments[v.Argument(v.Scalar)])}}
}

// complete says which arguments a step must have.  It is apart from the steps because a file's `defaults` may give them.
func complete(table *verb.Table) object {
	properties := object{"do": ref("completeSteps"), "parallel": ref("completeSteps")}
	for _, v := range table.Verbs() {
		var names []string
		groups := make(map[string][]any)
		var rules []any
		for _, argument := range v.Arguments {
			switch {
			case argument.Group != "":
				groups[argument.Group] = append(groups[argument.Group], require(argument.Name))
			case argument.Required && !argument.Inline && argument.Default == nil && argument.Name != "within": // which may stand beside the verb
				names = append(names, argument.Name)
			}
		}
		if names != nil {
			rules = append(rules, require(names...))
		}
		for _, argument := range v.Arguments {
			if members := groups[argument.Group]; members != nil {
				rules = append(rules, object{"anyOf": members})
				delete(groups, argument.Group)
			}
		}
		if rules == nil {
			continue
		}
		given := object{"allOf": rules}
		for i := range v.Arguments {
			if v.Arguments[i].Type == verb.Arguments { // a mapping of a fragment may have them
				given = object{"anyOf": []any{given, require(v.Arguments[i].Name)}}
			}
		}
		properties[v.Name] = when(object{"type": "object"}, given)
	}
	return object{"description": "A step with all arguments that its verb needs.", "properties": properties}
}

// completeWithoutDefaults wants complete steps of a file whose `defaults` have no arguments.  The fragments of a library
// are completed by whoever imports them.
func completeWithoutDefaults() object {
	steps := ref("completeSteps")
	return when(object{
		"properties": object{"defaults": object{"propertyNames": object{"enum": ast.Names(ast.Keys("defaults"))}}},
		"anyOf":      []any{require("steps"), require("cases")},
	}, object{"properties": object{
		"setup": steps, "steps": steps, "finally": steps,
		"cases":     object{"items": object{"properties": object{"steps": steps}}},
		"fragments": object{"additionalProperties": object{"properties": object{"do": steps}}},
	}})
}
