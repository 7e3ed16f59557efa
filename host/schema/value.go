package schema

import (
	"rdmarun/host/scenario/compile"
	"rdmarun/host/scenario/jsonschema"
	"rdmarun/host/scenario/verb"
)

// values are the definitions of the types of arguments and results, and of their matchers.
func values() object {
	definitions := object{
		"integer": object{"type": []string{"integer", "string"}, "pattern": jsonschema.IntegerForm},
		"size":    object{"type": []string{"integer", "string"}, "pattern": jsonschema.SizeForm},
		"duration": object{"anyOf": []any{
			object{"const": 0}, object{"type": "string", "pattern": jsonschema.DurationForm},
		}},
		"boolean": object{"anyOf": []any{object{"type": "boolean"}, jsonschema.Expression()}},
		"text":    jsonschema.Scalar(),
		"data": object{"anyOf": []any{
			object{
				"type": "object", "properties": dataProperties(), "additionalProperties": false, "oneOf": dataForms(),
			},
			jsonschema.Expression(),
		}},
		"status": object{"anyOf": []any{
			object{"type": "integer"}, object{"enum": append(verb.ErrnoNames(), verb.RejectReasons()...)},
			object{"type": "string", "pattern": jsonschema.IntegerForm},
		}},
		"errno": object{"anyOf": []any{
			object{"enum": append(verb.ErrnoNames(), "0")}, object{"const": 0}, jsonschema.Expression(),
		}},
		"match_errno":   matching(jsonschema.Ref("errno")),
		"completeSteps": object{"items": jsonschema.Ref("complete")},
	}
	for t := range verb.Types {
		name := compile.Definition(t)
		definitions["match_"+name] = matching(jsonschema.Ref(name))
	}
	return definitions
}

func matched(name string) object { return jsonschema.Ref("match_" + name) }

// matching is a value, or a mapping of matchers.
func matching(value object) object {
	properties := object{}
	for _, matcher := range compile.Matchers() {
		properties[matcher.Name] = jsonschema.Documented(value, matcher.Doc)
	}
	for name, operand := range map[string]object{
		"between": jsonschema.Pair(value), "any_of": jsonschema.ListOf(value),
		"prefix": {}, "padded": {}, "re": jsonschema.Scalar(), "approx": {},
	} {
		properties[name] = jsonschema.Documented(operand, properties[name].(object)["description"].(string))
	}
	properties["tol"] = jsonschema.Documented(jsonschema.Scalar(), "how far approx reaches")
	return object{"anyOf": []any{
		value, object{"type": "object", "minProperties": 1, "properties": properties, "additionalProperties": false},
	}}
}

// dataForms are the ways to write data: one of its keys, but for a byte with its number.
func dataForms() []any {
	var forms []any
	for _, form := range compile.DataForms() {
		switch form.Name {
		case "times":
		case "repeat":
			forms = append(forms, jsonschema.Require("repeat", "times"))
		default:
			forms = append(forms, object{"required": []string{form.Name}, "not": jsonschema.Require("times")})
		}
	}
	return forms
}

func dataForm(name string) object {
	switch name {
	case "byte", "repeat":
		return object{
			"type": []string{"integer", "string"}, "minimum": 0, "maximum": 255, "pattern": jsonschema.IntegerForm,
		}
	case "times":
		return jsonschema.Ref("size")
	case "fields":
		return compile.LayoutSchema(nil)
	}
	return jsonschema.Scalar()
}

func dataProperties() object {
	properties := object{}
	for _, form := range compile.DataForms() {
		properties[form.Name] = jsonschema.Documented(dataForm(form.Name), form.Doc)
	}
	return properties
}
