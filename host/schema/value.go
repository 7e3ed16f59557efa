package schema

import (
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/verb"
)

// The forms of scalars that a schema can tell apart.  What an expression makes, only the run knows; units and bounds with
// units the checker knows better.
const (
	expressionForm = `\$\(`
	integerForm    = `^[+-]?[0-9][0-9A-Fa-fxXoOB_]*$|` + expressionForm
	sizeForm       = `^[+-]?[0-9][0-9A-Fa-fxXoOB_]*$|^-?[0-9]+(\.[0-9]+)?\s*[A-Za-z]+$|` + expressionForm
	durationForm   = `^[+-]?0$|^[+-]?[0-9.]+[a-zµμ]+[0-9.a-zµμ]*$|` + expressionForm
	fractionForm   = `^[-+0-9.eE]+%?$|` + expressionForm
	rateForm       = `/s$|` + expressionForm
)

// values are the definitions of the types of arguments and results, and of matchers of them.
func values() object {
	definitions := object{
		"integer":  object{"type": []string{"integer", "string"}, "pattern": integerForm},
		"size":     object{"type": []string{"integer", "string"}, "pattern": sizeForm},
		"duration": object{"anyOf": []any{object{"const": 0}, object{"type": "string", "pattern": durationForm}}},
		"boolean":  object{"anyOf": []any{object{"type": "boolean"}, expression()}},
		"text":     scalar(),
		"data": object{"anyOf": []any{
			object{"type": "object", "properties": dataProperties(), "additionalProperties": false, "oneOf": dataForms()},
			expression(),
		}},
		"status": object{"anyOf": []any{
			object{"type": "integer"}, object{"enum": append(verb.ErrnoNames(), verb.RejectReasons()...)}, object{"type": "string", "pattern": integerForm},
		}},
		"errno":         object{"anyOf": []any{object{"enum": append(verb.ErrnoNames(), "0")}, object{"const": 0}, expression()}},
		"match_errno":   matching(ref("errno")),
		"completeSteps": object{"items": ref("complete")},
	}
	for _, t := range []verb.Type{verb.Integer, verb.Size, verb.Duration, verb.Boolean, verb.Data, verb.Status, verb.Text} {
		definitions["match_"+typeName(t)] = matching(ref(typeName(t)))
	}
	return definitions
}

// typeName is the definition of a type.
func typeName(t verb.Type) string {
	switch t {
	case verb.Integer, verb.Unsigned:
		return "integer"
	case verb.Size:
		return "size"
	case verb.Duration:
		return "duration"
	case verb.Boolean:
		return "boolean"
	case verb.Data:
		return "data"
	case verb.Status:
		return "status"
	}
	return "text"
}

func matched(name string) object { return ref("match_" + name) }

// matching is a value, or a mapping of matchers.
func matching(value object) object {
	properties := object{}
	for _, matcher := range compile.Matchers() {
		properties[matcher.Name] = documented(value, matcher.Doc)
	}
	for name, operand := range map[string]object{
		"between": {"type": "array", "minItems": 2, "maxItems": 2, "items": value}, "any_of": listOf(value),
		"prefix": {}, "padded": {}, "re": scalar(), "approx": {},
	} {
		properties[name] = documented(operand, properties[name].(object)["description"].(string))
	}
	properties["tol"] = documented(scalar(), "how far approx reaches")
	return object{"anyOf": []any{value, object{"type": "object", "minProperties": 1, "properties": properties, "additionalProperties": false}}}
}

// dataForms are the ways to write data: one of its keys, but for a byte with its number.
func dataForms() []any {
	var forms []any
	for _, form := range compile.DataForms() {
		switch form.Name {
		case "times":
		case "repeat":
			forms = append(forms, require("repeat", "times"))
		default:
			forms = append(forms, object{"required": []string{form.Name}, "not": require("times")})
		}
	}
	return forms
}

func dataForm(name string) object {
	switch name {
	case "byte", "repeat":
		return object{"type": []string{"integer", "string"}, "minimum": 0, "maximum": 255, "pattern": integerForm}
	case "times":
		return ref("size")
	case "fields":
		return fields()
	}
	return scalar()
}

// fields is a list of integers in bytes: their values, or their names.
func fields() object {
	properties := object{}
	for _, form := range compile.FieldForms() {
		properties[form.Name] = documented(scalar(), form.Doc)
	}
	return listOf(object{"type": "object", "minProperties": 1, "maxProperties": 1, "properties": properties, "additionalProperties": false})
}

func dataProperties() object {
	properties := object{}
	for _, form := range compile.DataForms() {
		properties[form.Name] = documented(dataForm(form.Name), form.Doc)
	}
	return properties
}

// argumentSchema is what can stand for an argument, an expression included.
func argumentSchema(argument *verb.Argument) object {
	switch argument.Type {
	case verb.Integer, verb.Unsigned:
		integer := object{"type": []string{"integer", "string"}, "pattern": integerForm}
		if argument.Min != 0 || argument.Max != 0 {
			integer["minimum"], integer["maximum"] = argument.Min, argument.Max
		}
		return integer
	case verb.Size, verb.Duration, verb.Boolean, verb.Status:
		return ref(typeName(argument.Type))
	case verb.Fraction:
		return object{"type": []string{"number", "string"}, "minimum": 0, "maximum": 1, "pattern": fractionForm}
	case verb.Rate:
		return object{"type": "string", "pattern": rateForm}
	case verb.Word:
		return words(argument.Words, false)
	case verb.Words:
		return object{"anyOf": []any{words(argument.Words, true), expression()}}
	case verb.Fields:
		return object{"anyOf": []any{words(verb.FieldNames(), true), expression()}}
	case verb.Rights, verb.PeerRights:
		return words(verb.AccessNames(), true)
	case verb.Roles:
		return object{"anyOf": []any{object{"type": "array", "minItems": 2, "maxItems": 2, "items": scalar()}, expression()}}
	case verb.Data:
		return ref("data")
	case verb.Content:
		return object{"anyOf": []any{ref("data"), scalar()}}
	case verb.Remote:
		return object{"anyOf": []any{scalar(), object{
			"type": "object", "required": []string{"addr", "rkey"}, "additionalProperties": false,
			"properties": object{"addr": ref("integer"), "rkey": ref("integer"), "length": ref("size")},
		}}}
	case verb.QueuePair, verb.Arguments:
		return object{"type": []string{"object", "string"}}
	case verb.Layout:
		return fields()
	case verb.Sizes:
		return object{"anyOf": []any{ref("size"), object{"type": "string"}, listOf(ref("size")), object{
			"type": "object", "required": []string{"pow2"}, "additionalProperties": false,
			"properties": object{"pow2": object{"type": "array", "minItems": 2, "maxItems": 2, "items": ref("size")}},
		}}}
	case verb.Counters:
		return object{"anyOf": []any{expression(), object{"type": "object", "minProperties": 1, "additionalProperties": object{
			"type": "object", "required": []string{"delta"}, "additionalProperties": false, "properties": object{"delta": matched("integer")},
		}}}}
	case verb.Options:
		return optionSchema(argument)
	case verb.OptionList:
		return object{"anyOf": []any{expression(), object{"type": "array", "minItems": 1, "items": optionSchema(argument)}}}
	}
	return scalar() // a name or a text
}

// optionSchema is a mapping whose keys are arguments of their own.
func optionSchema(argument *verb.Argument) object {
	properties, required := object{}, []string{}
	for i := range argument.Fields {
		field := &argument.Fields[i]
		properties[field.Name] = documented(argumentSchema(field), field.Doc)
		if field.Required {
			required = append(required, field.Name)
		}
	}
	schema := object{"type": []string{"object", "string"}, "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// expression is a string with $(...) in it.
func expression() object { return object{"type": "string", "pattern": expressionForm} }

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
