package schema

import (
	"fmt"
	"slices"
	"strings"

	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/jsonschema"
	"rdmarun/host/scenario/verb"
)

// loops repeat the steps of `do`, or the one other action of their step.
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
		s.definitions["word_"+name] = jsonschema.Word(result.Words)
		s.definitions[name] = matching(jsonschema.Ref("word_" + name))
	}
	return jsonschema.Ref(s.names[set])
}

// step is one step: one action, and the modifiers that belong to it.
func step(table *verb.Table, sets *wordSets) object {
	types := object{
		"do": jsonschema.Ref("steps"), "parallel": jsonschema.Ref("steps"), "took": jsonschema.Ref("took"),
		"expect": object{"anyOf": []any{object{"type": "object"}, object{"const": ast.AnyResult}}},
		"with":   object{"type": "object"},
		"name":   jsonschema.Scalar(), "role": jsonschema.Scalar(), "if": jsonschema.Scalar(),
		"as":     jsonschema.Scalar(),
		"within": jsonschema.Ref("duration"), "timeout": jsonschema.Ref("duration"),
		"repeat": jsonschema.Ref("repeat"), "use": jsonschema.Scalar(), "barrier": jsonschema.Scalar(),
		"of": jsonschema.ListOf(jsonschema.Scalar()), "args": list(), "function": jsonschema.Scalar(),
		"for_each": object{
			"type": "object", "minProperties": 1, "propertyNames": name(),
			"additionalProperties": jsonschema.ListOf(jsonschema.Scalar()),
		},
		"guest": jsonschema.Word(ast.GuestActions), "program": jsonschema.Word(ast.ProgramActions),
		"signal": jsonschema.Scalar(), "leftovers": object{"enum": []string{"ignore"}},
		"tags": object{"anyOf": []any{
			jsonschema.ListOf(jsonschema.Scalar()),
			object{"type": "object", "additionalProperties": jsonschema.Scalar()},
		}},
		"xfail": jsonschema.Ref("xfail"),
	}
	schema := mapping(
		"One step: an action, and what modifies it.", append(ast.Keys("action"), ast.Keys("step")...), types,
	)
	properties := schema["properties"].(object)
	one := []any{jsonschema.Require("do")}
	for _, action := range ast.Keys("action") {
		if action.Name != loops[0] && action.Name != loops[1] {
			one = append(one, jsonschema.Require(action.Name))
		}
	}
	// What a key requires is checked where the key is, and nowhere else.
	follows := modifierRules(table)
	for _, v := range table.Verbs() {
		properties[v.Name] = verbSchema(v)
		one = append(one, jsonschema.Require(v.Name))
		follows[v.Name] = expectation(v, sets)
	}
	guest := &verb.Verb{Results: slices.Concat(verb.StepVerb("guest run").Results, verb.StepVerb("guest call").Results)}
	follows["guest"] = object{"allOf": []any{
		expectation(guest, sets),
		when(object{"properties": object{"guest": object{"const": "call"}}}, jsonschema.Require("function")),
	}}
	program := &verb.Verb{Results: verb.StepVerb("program run").Results}
	follows["program"] = object{"allOf": []any{
		expectation(program, sets),
		when(object{"properties": object{"program": object{"const": "signal"}}}, jsonschema.Require("signal")),
	}}
	schema["oneOf"], schema["not"], schema["dependentSchemas"] = one, jsonschema.Require(loops...), follows
	return schema
}

// modifierRules say which keys a modifier can be combined with.
func modifierRules(table *verb.Table) object {
	rules := object{"barrier": jsonschema.Require("of")}
	others := []string{"do"}
	for _, action := range ast.Keys("action") {
		others = append(others, action.Name)
	}
	waiting := []any{}
	for _, v := range table.Verbs() {
		if v.Waits {
			waiting = append(waiting, jsonschema.Require(v.Name))
		}
	}
	for _, modifier := range ast.Keys("step") {
		keys, verbs, all := ast.ActionsOf(modifier.Name)
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
				allowed = append(allowed, jsonschema.Require(name))
			case !isLoop: // a loop's steps are those of `do`, or the action in the same mapping
				refused = append(refused, jsonschema.Require(name))
			}
		}
		switch {
		case all, modifier.Name == "do":
		case modifier.Name == "within":
			rules["within"] = object{"anyOf": append(allowed, waiting...)}
		case modifier.Name == "as": // which names the counter of a repeat, whatever it repeats
			rules["as"] = when(object{"not": jsonschema.Require("repeat")}, object{"not": object{"anyOf": refused}})
		case verbs && len(refused) > 0:
			rules[modifier.Name] = object{"not": object{"anyOf": refused}}
		case modifier.Name == "function":
			rules["function"] = object{
				"required": []string{"guest"}, "properties": object{"guest": object{"const": "call"}},
			}
		case modifier.Name == "signal":
			rules["signal"] = object{
				"required": []string{"program"}, "properties": object{"program": object{"const": "signal"}},
			}
		case !verbs:
			rules[modifier.Name] = object{"anyOf": allowed}
		}
	}
	return rules
}

func when(condition, then object) object { return object{"if": condition, "then": then} }

// expectation has the names that `expect` of an action may use.
func expectation(v *verb.Verb, sets *wordSets) object {
	properties := object{}
	for _, result := range v.Results {
		properties[result.Name] = jsonschema.Documented(sets.field(&result), result.Doc)
	}
	if v.CanFail() {
		properties[compile.Errno] = jsonschema.Documented(matched("errno"), "of a call that must fail")
	}
	if v.Waits {
		properties[compile.None] = object{
			"description": "true: nothing may come", "type": []string{"boolean", "string"},
		}
	}
	schema := object{"type": "object", "properties": properties, "additionalProperties": false}
	for i := range v.Arguments {
		switch v.Arguments[i].Type {
		case verb.Layout:
			schema["additionalProperties"] = matched("integer") // the step names its fields
		case verb.Pattern:
			schema["additionalProperties"] = true // of any type
		}
	}
	return object{"properties": object{"expect": object{"anyOf": []any{schema, object{"const": ast.AnyResult}}}}}
}

func (s *wordSets) field(result *verb.Result) object {
	if len(result.Words) > 0 {
		return s.matched(result)
	}
	return matched(compile.Definition(result.Type))
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
				properties[form.Name] = jsonschema.Documented(dataForm(form.Name), form.Doc)
			}
			arguments["oneOf"] = dataForms()
			continue
		}
		properties[argument.Name] = jsonschema.Documented(compile.Schema(&argument), argument.Doc)
	}
	arguments["properties"] = properties
	var both []any
	for _, argument := range v.Arguments {
		members := groups[argument.Group]
		for i, other := range members {
			if argument.Name == other && i > 0 {
				for _, earlier := range members[:i] {
					both = append(both, jsonschema.Require(earlier, other))
				}
			}
		}
	}
	if both != nil {
		arguments["not"] = object{"anyOf": both}
	}
	if v.Scalar == "" {
		return jsonschema.Documented(arguments, doc)
	}
	return object{"description": doc, "anyOf": []any{arguments, compile.Schema(&v.Arguments[v.Argument(v.Scalar)])}}
}

// complete says which arguments a step must have.  It is apart from the steps because a file's `defaults` may give
// them.
func complete(table *verb.Table) object {
	properties := object{"do": jsonschema.Ref("completeSteps"), "parallel": jsonschema.Ref("completeSteps")}
	for _, v := range table.Verbs() {
		var names []string
		groups := make(map[string][]any)
		var rules []any
		for _, argument := range v.Arguments {
			switch {
			case argument.Group != "":
				groups[argument.Group] = append(groups[argument.Group], jsonschema.Require(argument.Name))
			case argument.Required && !argument.Inline && argument.Default == nil && argument.Name != "within":
				// which may be next to the verb
				names = append(names, argument.Name)
			}
		}
		if names != nil {
			rules = append(rules, jsonschema.Require(names...))
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
				given = object{"anyOf": []any{given, jsonschema.Require(v.Arguments[i].Name)}}
			}
		}
		properties[v.Name] = when(object{"type": "object"}, given)
	}
	return object{"description": "A step with all arguments that its verb needs.", "properties": properties}
}

// completeWithoutDefaults requires complete steps of a file without arguments in its `defaults`.  The file that imports
// a library completes the library's fragments.
func completeWithoutDefaults() object {
	steps := jsonschema.Ref("completeSteps")
	return when(object{
		"properties": object{"defaults": object{"propertyNames": object{"enum": ast.Names(ast.Keys("defaults"))}}},
		"anyOf":      []any{jsonschema.Require("steps"), jsonschema.Require("cases")},
	}, object{"properties": object{
		"setup": steps, "steps": steps, "finally": steps,
		"cases":     object{"items": object{"properties": object{"steps": steps}}},
		"fragments": object{"additionalProperties": object{"properties": object{"do": steps}}},
	}})
}
