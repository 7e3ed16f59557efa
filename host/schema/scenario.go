// Package schema makes the JSON Schemas of scenarios and of records.  That of scenarios comes from the tables
// of the checker: the keys of package ast and the verbs of package verb.  It is laxer than the checker, which knows names, units and expressions,
// and never stricter: editors complete and document with it.
//
// The result is kept in the folder schema, from where the binary embeds it; after a change of the language:
//
//	go generate ./host/schema
package schema

import (
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/verb"
)

//go:generate go run ./generate ../../schema

// object is a JSON object; encoding/json writes its keys in order, so the same language is the same text.
type object = map[string]any

// Scenario is the JSON Schema (2020-12) of scenario files.
func Scenario() ([]byte, error) {
	table := verb.NewTable()
	root := mapping("A scenario of rdmarun.", ast.Keys("file"), fileTypes())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "rdmarun scenario " + ast.Version
	root["required"] = []string{"rdmarun"}
	// A file has steps or cases; without either it is a library of fragments.
	root["anyOf"] = []any{require("steps"), require("cases"), require("fragments")}
	root["not"] = require("steps", "cases")
	root["allOf"] = []any{completeWithoutDefaults()}
	definitions := values()
	definitions["step"] = step(table, &wordSets{definitions, make(map[string]string)})
	for _, more := range []object{roles(), settings(), {
		"steps":    listOf(ref("step")),
		"complete": complete(table),
		"case":     required(mapping("One named test.", ast.Keys("cases"), fileTypes()), "name", "steps"),
		"fragment": required(mapping("Steps to use in several places.", ast.Keys("fragments"), fileTypes()), "do"),
		"param": required(mapping("A parameter.", ast.Keys("params"), object{
			"type": object{"enum": ast.Names(ast.Keys("type"))}, "values": listOf(scalar()), "min": scalar(), "max": scalar(), "doc": scalar(),
		}), "type"),
		"defaults": defaults(table),
		"took":     mapping("Bounds of a time.", ast.Keys("took"), object{"min": ref("duration"), "max": ref("duration")}),
	}} {
		for name, schema := range more {
			definitions[name] = schema
		}
	}
	root["$defs"] = definitions
	return encode(root)
}

// roles are the definitions of what a role has.
func roles() object {
	role := mapping("A party.", ast.Keys("roles"), object{
		"buffers": mapOf("buffer"), "guest": ref("guest"), "count": ref("integer"), "device": scalar(), "port": ref("integer"),
		"path":     required(mapping("One of the port's addresses.", ast.Keys("path"), object{"gid": scalar()}), "gid"),
		"place":    required(mapping("Where instances run.", ast.Keys("place"), object{"spread": object{"const": "host"}}), "spread"),
		"cpu":      object{"type": []string{"integer", "string", "array"}},
		"optional": object{"type": "boolean"},
	})
	role["not"] = require("guest", "buffers") // a guest has its own memory
	return object{
		"role": role,
		"buffer": required(mapping("Registered memory.", ast.Keys("buffers"), object{
			"size": ref("size"), "access": words(verb.AccessNames(), true), "backing": words(verb.BackingNames(), false), "fill": ref("data"),
		}), "size"),
		"guest": required(mapping("A WebAssembly program.", ast.Keys("guest"), object{
			"module": scalar(), "args": list(), "limits": ref("limits"),
		}), "module"),
		"limits": mapping("What a guest may take.", ast.Keys("limits"), object{
			"time": ref("duration"), "memory": ref("size"), "registered": ref("size"), "handles": ref("integer"), "files": ref("integer"), "output": ref("size"),
		}),
	}
}

// settings are the definitions of what is said once for a file or a case.
func settings() object {
	matrix := mapping("Values that it runs with, each combination.", ast.Keys("matrix"), object{
		"exclude": listOf(object{"type": "object", "additionalProperties": scalar()}),
	})
	matrix["additionalProperties"] = listOf(scalar()) // a name with its values
	matrix["propertyNames"], matrix["minProperties"] = name(), 1
	return object{
		"matrix": matrix,
		"provider": mapping("Settings of providers.", ast.Keys("provider"), object{"soft": mapping("The soft provider.", ast.Keys("soft"), object{
			"clock": words([]string{"virtual", "wall"}, false), "seed": ref("integer"),
		})}),
		"threshold": required(mapping("A limit on a metric.", ast.Keys("thresholds"), object{
			"metric": scalar(), "pass": listOf(scalar()), "if": scalar(),
			"abort_on_fail": object{"anyOf": []any{object{"type": "boolean"}, mapping("When.", ast.Keys("abort_on_fail"), object{"after": ref("duration")})}},
		}), "metric", "pass"),
		"xfail": required(mapping("That and when it is known to fail.", ast.Keys("xfail"), object{
			"when": scalar(), "reason": scalar(),
			"raises": mapping("The failure that is expected.", ast.Keys("raises"), object{
				"action": matching(scalar()), "what": matching(scalar()), "got": matching(scalar()),
			}),
		}), "reason"),
	}
}

// defaults has, beside its keys, arguments by verb.
func defaults(table *verb.Table) object {
	schema := mapping("What holds for the whole file.", ast.Keys("defaults"), object{"qp": object{"type": "object"}, "within": ref("duration")})
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
		"rdmarun": object{"const": ast.Version}, "name": scalar(), "doc": scalar(), "tags": listOf(scalar()),
		"timeout": ref("duration"), "stall_timeout": ref("duration"),
		"params": mapOf("param"), "defaults": ref("defaults"), "fragments": mapOf("fragment"), "matrix": ref("matrix"),
		"imports":  object{"type": "object", "propertyNames": name(), "additionalProperties": scalar()},
		"requires": listOf(scalar()), "provider": ref("provider"), "thresholds": listOf(ref("threshold")), "xfail": ref("xfail"),
		"roles": object{"type": "object", "additionalProperties": object{"anyOf": []any{ref("role"), object{"type": "null"}}}},
		"setup": ref("steps"), "steps": ref("steps"), "finally": ref("steps"), "do": ref("steps"),
		"cases": listOf(ref("case")),
	}
}

// mapping is an object with these keys and no others.
func mapping(doc string, keys []ast.Key, types object) object {
	properties := object{}
	for _, key := range keys {
		properties[key.Name] = documented(types[key.Name], key.Doc)
	}
	return object{"description": doc, "type": "object", "properties": properties, "additionalProperties": false}
}

// required is the mapping with keys that it must have.
func required(schema object, keys ...string) object {
	schema["required"] = keys
	return schema
}

// require is a schema of nothing but keys that must be there.
func require(keys ...string) object { return object{"required": keys} }

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

func mapOf(schema string) object {
	return object{"type": "object", "propertyNames": name(), "additionalProperties": ref(schema)}
}

func list() object { return object{"type": "array"} }

// listOf is a list that has something.
func listOf(item object) object { return object{"type": "array", "minItems": 1, "items": item} }

// scalar is whatever YAML makes of a plain word.
func scalar() object { return object{"type": []string{"string", "number", "boolean", "null"}} }

// name is what a parameter, a role or a buffer can be called.
func name() object { return object{"pattern": ast.NameForm} }
