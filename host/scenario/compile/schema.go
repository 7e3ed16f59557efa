package compile

import (
	"rdmarun/host/scenario/jsonschema"
	"rdmarun/host/scenario/verb"
)

type object = jsonschema.Object

// Schema is the JSON Schema of what can stand for an argument, an expression included.
func Schema(argument *verb.Argument) jsonschema.Object {
	switch row := &newTypeTable()[argument.Type]; {
	case row.schema != nil:
		return row.schema(argument)
	case row.definition != "":
		return jsonschema.Ref(row.definition)
	}
	return jsonschema.Scalar() // a name or a text
}

// Definition is the name of what JSON Schemas say of the values of a type.
func Definition(t verb.Type) string {
	if name := newTypeTable()[t].definition; name != "" {
		return name
	}
	return "text"
}

// orExpression is a schema, or an expression instead.
func orExpression(schema object) object {
	return object{"anyOf": []any{schema, jsonschema.Expression()}}
}

func integerSchema(argument *verb.Argument) object {
	integer := object{"type": []string{"integer", "string"}, "pattern": jsonschema.IntegerForm}
	if argument.Min != 0 || argument.Max != 0 {
		integer["minimum"], integer["maximum"] = argument.Min, argument.Max
	}
	return integer
}

func fractionSchema(*verb.Argument) object {
	return object{"type": []string{"number", "string"}, "minimum": 0, "maximum": 1, "pattern": jsonschema.FractionForm}
}

func rateSchema(*verb.Argument) object {
	return object{"type": "string", "pattern": jsonschema.RateForm}
}

func wordSchema(argument *verb.Argument) object { return jsonschema.Word(argument.Words) }

func wordsSchema(argument *verb.Argument) object {
	return orExpression(jsonschema.Words(argument.Words))
}

func fieldsSchema(*verb.Argument) object { return orExpression(jsonschema.Words(verb.FieldNames())) }

func rightsSchema(*verb.Argument) object { return jsonschema.Words(verb.AccessNames()) }

func rolesSchema(*verb.Argument) object { return orExpression(jsonschema.Pair(jsonschema.Scalar())) }

func contentSchema(*verb.Argument) object {
	return object{"anyOf": []any{jsonschema.Ref("data"), jsonschema.Scalar()}}
}

func remoteSchema(*verb.Argument) object {
	return object{"anyOf": []any{jsonschema.Scalar(), object{
		"type": "object", "required": []string{"addr", "rkey"}, "additionalProperties": false,
		"properties": object{"addr": jsonschema.Ref("integer"), "rkey": jsonschema.Ref("integer"), "length": jsonschema.Ref("size")},
	}}}
}

func mappingSchema(*verb.Argument) object { return object{"type": []string{"object", "string"}} }

// LayoutSchema is a list of integers in bytes: their values, or their names.
func LayoutSchema(*verb.Argument) jsonschema.Object {
	properties := object{}
	for _, form := range FieldForms() {
		properties[form.Name] = jsonschema.Documented(jsonschema.Scalar(), form.Doc)
	}
	return jsonschema.ListOf(object{"type": "object", "minProperties": 1, "maxProperties": 1, "properties": properties, "additionalProperties": false})
}

func sizesSchema(*verb.Argument) object {
	size := jsonschema.Ref("size")
	return object{"anyOf": []any{size, object{"type": "string"}, jsonschema.ListOf(size), object{
		"type": "object", "required": []string{powersKey}, "additionalProperties": false,
		"properties": object{powersKey: jsonschema.Pair(size)},
	}}}
}

func countersSchema(*verb.Argument) object {
	return object{"anyOf": []any{jsonschema.Expression(), object{"type": "object", "minProperties": 1, "additionalProperties": object{
		"type": "object", "required": []string{deltaKey}, "additionalProperties": false, "properties": object{deltaKey: jsonschema.Ref("match_integer")},
	}}}}
}

// optionSchema is a mapping with arguments of its own as keys.
func optionSchema(argument *verb.Argument) object {
	properties, required := object{}, []string{}
	for i := range argument.Fields {
		field := &argument.Fields[i]
		properties[field.Name] = jsonschema.Documented(Schema(field), field.Doc)
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

func optionListSchema(argument *verb.Argument) object {
	return object{"anyOf": []any{jsonschema.Expression(), object{"type": "array", "minItems": 1, "items": optionSchema(argument)}}}
}
