package schema

import (
	"rdmarun/host/scenario/shape"
	"rdmarun/host/scenario/verb"
)

// object is a JSON object; encoding/json writes its keys in order, so the same language is the same text.
type object = map[string]any

// Scenario is the JSON Schema (2020-12) of scenario files.
func Scenario() ([]byte, error) {
	language := shape.Keys()
	root := mapping("A scenario of rdmarun.", language.File, fileTypes())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "rdmarun scenario " + shape.Version
	root["required"] = []string{"rdmarun"}
	root["$defs"] = object{
		"steps":    object{"type": "array", "minItems": 1, "items": ref("step")},
		"step":     step(language, verb.NewTable()),
		"case":     mapping("One named test.", language.Case, fileTypes()),
		"fragment": mapping("Steps to use in several places.", language.Fragment, fileTypes()),
		"param":    mapping("A parameter.", language.Param, object{"type": object{"enum": language.ParamTypes}, "values": list()}),
		"role": mapping("A party.", language.Role, object{
			"buffers": mapOf("buffer"), "guest": ref("guest"),
			"path":  mapping("One of the port's addresses.", language.Path, nil),
			"place": mapping("Where instances run.", language.Place, nil),
		}),
		"buffer":   mapping("Registered memory.", language.Buffer, object{"access": words(verb.AccessNames(), true)}),
		"guest":    mapping("A WebAssembly program.", language.Guest, object{"args": list(), "limits": ref("limits")}),
		"limits":   mapping("What a guest may take.", language.Limits, nil),
		"defaults": defaults(language, verb.NewTable()),
		"took":     mapping("Bounds of a time.", language.Took, nil),
	}
	return encode(root)
}

// defaults has, beside its keys, arguments by verb.
func defaults(language shape.Language, table *verb.Table) object {
	schema := mapping("What holds for the whole file.", language.Defaults, object{"qp": object{"type": "object"}})
	properties := schema["properties"].(object)
	for _, v := range table.Verbs() {
		if _, isKey := properties[v.Name]; !isKey {
			properties[v.Name] = object{"description": "arguments of all " + v.Name + " that do not give them", "type": "object"}
		}
	}
	return schema
}

// fileTypes are the types of the keys of files, cases and fragments.  A key that is not here takes anything:
// the checker has the last word.
func fileTypes() object {
	return object{
		"rdmarun": object{"const": shape.Version}, "name": scalar(), "doc": scalar(), "tags": list(), "timeout": scalar(),
		"params": mapOf("param"), "defaults": ref("defaults"), "fragments": mapOf("fragment"),
		"roles": object{"type": "object", "additionalProperties": object{"anyOf": []any{ref("role"), object{"type": "null"}}}},
		"setup": ref("steps"), "steps": ref("steps"), "finally": ref("steps"), "do": ref("steps"),
		"cases": object{"type": "array", "items": ref("case")},
	}
}

// mapping is an object with these keys and no others.
func mapping(doc string, keys []shape.Key, types object) object {
	properties := object{}
	for _, key := range keys {
		properties[key.Name] = documented(types[key.Name], key.Doc)
	}
	return object{"description": doc, "type": "object", "properties": properties, "additionalProperties": false}
}

// documented is a copy of a schema with a description.
func documented(schema any, doc string) object {
	described := object{"description": doc}
	if known, ok := schema.(object); ok {
		for name, value := range known {
			described[name] = value
		}
	}
	return described
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func mapOf(name string) object {
	return object{"type": "object", "additionalProperties": ref(name)}
}

func list() object { return object{"type": "array"} }

// scalar is whatever YAML makes of a plain word.
func scalar() object { return object{"type": []string{"string", "number", "boolean", "null"}} }
