package schema

import (
	"rdmarun/host/scenario/plan"
	"rdmarun/host/scenario/shape"
	"rdmarun/host/scenario/verb"
)

// step has all keys of all steps: which of them go together the checker says better than a schema can.
func step(language shape.Language, table *verb.Table) object {
	types := object{
		"do": ref("steps"), "took": ref("took"), "expect": object{"type": "object"}, "with": object{"type": "object"},
		"name": scalar(), "role": scalar(), "if": scalar(), "as": scalar(), "within": scalar(), "timeout": scalar(),
		"repeat": scalar(), "use": scalar(), "barrier": scalar(), "args": list(),
		"guest": words(shape.GuestActions, false), "leftovers": object{"enum": []string{"ignore"}},
		"tags": object{"type": []string{"array", "object"}}, "xfail": object{"type": "object"},
	}
	schema := mapping("One step: an action, and what modifies it.", append(language.Actions, language.Modifiers...), types)
	properties := schema["properties"].(object)
	for _, v := range table.Verbs() {
		properties[v.Name] = verbSchema(v)
	}
	schema["minProperties"] = 1
	return schema
}

func verbSchema(v *verb.Verb) object {
	doc := v.Doc
	if v.Manual != "" {
		doc += "  See " + v.Manual + "."
	}
	properties := object{} // none of them is required: the file's `defaults` may give it
	for _, argument := range v.Arguments {
		if argument.Inline {
			for _, form := range plan.DataForms() {
				properties[form.Name] = documented(dataFormSchema(form.Name), form.Doc)
			}
			continue
		}
		properties[argument.Name] = documented(argumentSchema(&argument), argument.Doc)
	}
	arguments := object{"type": "object", "properties": properties, "additionalProperties": false}
	if v.Scalar == "" {
		return documented(arguments, doc)
	}
	return object{"description": doc, "anyOf": []any{arguments, scalar()}}
}

// argumentSchema is what can stand for an argument, an expression included.
func argumentSchema(argument *verb.Argument) object {
	switch argument.Type {
	case verb.Integer:
		integer := object{"type": []string{"integer", "string"}}
		if argument.Min != 0 || argument.Max != 0 {
			integer["minimum"], integer["maximum"] = argument.Min, argument.Max
		}
		return integer
	case verb.Size, verb.Duration, verb.Rate:
		return object{"type": []string{"number", "string"}}
	case verb.Boolean:
		return object{"type": []string{"boolean", "string"}}
	case verb.Word:
		return words(argument.Words, false)
	case verb.Words:
		return object{"anyOf": []any{words(argument.Words, true), expression()}}
	case verb.Text, verb.Peer, verb.Address, verb.Status, verb.Endpoint, verb.Buffer:
		return scalar()
	case verb.Data, verb.Content, verb.Remote, verb.QueuePair, verb.Arguments:
		return object{"type": []string{"object", "string"}}
	case verb.Layout:
		return fieldsSchema()
	case verb.Sizes:
		return object{"type": []string{"array", "object", "number", "string"}}
	case verb.Fields:
		return object{"anyOf": []any{words(verb.FieldNames(), true), expression()}}
	case verb.Counters:
		return object{"type": []string{"object", "string"}}
	case verb.Options:
		properties := object{}
		for i := range argument.Fields {
			properties[argument.Fields[i].Name] = documented(argumentSchema(&argument.Fields[i]), argument.Fields[i].Doc)
		}
		return object{"type": []string{"object", "string"}, "properties": properties, "additionalProperties": false}
	}
	return object{} // a type newer than this package: the checker has the last word
}

// dataFormSchema is what stands behind a form of data, which may be among the arguments of a verb.
func dataFormSchema(form string) object {
	if form == "fields" {
		return fieldsSchema()
	}
	return scalar()
}

// fieldsSchema is a list of integers in bytes: their values, or their names.
func fieldsSchema() object {
	properties := object{}
	for _, form := range plan.FieldForms() {
		properties[form.Name] = documented(scalar(), form.Doc)
	}
	one := object{"type": "object", "properties": properties, "additionalProperties": false, "minProperties": 1, "maxProperties": 1}
	return object{"type": "array", "minItems": 1, "items": one}
}

// expression is a string with $(...) in it.
func expression() object { return object{"type": "string", "pattern": `\$\(`} }

// words is one of some words, or an expression; or a list of them.
func words(known []string, several bool) object {
	if len(known) == 0 {
		return object{}
	}
	one := object{"anyOf": []any{object{"enum": known}, expression()}}
	if !several {
		return one
	}
	return object{"type": "array", "items": one}
}
