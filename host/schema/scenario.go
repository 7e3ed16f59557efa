// Package schema makes the JSON Schemas of scenarios and of records.  That of scenarios comes from the tables of the
// checker: the keys of package ast and the verbs of package verb.  It is laxer than the checker, which knows names,
// units and expressions, and never stricter: editors complete and document with it.
//
// The result is kept in the folder schema, from where the binary embeds it; after a change of the language:
//
//	go generate ./host/schema
package schema

import (
	"rdmarun/host/scenario/ast"
	"rdmarun/host/scenario/jsonschema"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

//go:generate go run ./generate ../../schema

type object = jsonschema.Object

// Scenario is the JSON Schema (2020-12) of scenario files.
func Scenario() ([]byte, error) {
	table := verb.NewTable()
	root := mapping("A scenario of rdmarun.", ast.Keys("file"), fileTypes())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "rdmarun scenario " + ast.Version
	root["required"] = []string{"rdmarun"}
	// A file has steps or cases; without either it is a library of fragments and fixtures.
	root["anyOf"] = []any{
		jsonschema.Require("steps"), jsonschema.Require("cases"), jsonschema.Require("fragments"),
		jsonschema.Require("fixtures"),
	}
	root["not"] = jsonschema.Require("steps", "cases")
	root["allOf"] = []any{completeWithoutDefaults()}
	definitions := values()
	definitions["step"] = step(table, &wordSets{definitions, make(map[string]string)})
	for _, more := range []object{roles(), settings(), {
		"steps":    jsonschema.ListOf(jsonschema.Ref("step")),
		"complete": complete(table),
		"case":     required(mapping("One named test.", ast.Keys("cases"), fileTypes()), "name", "steps"),
		"fragment": required(mapping("Steps to use in several places.", ast.Keys("fragments"), fileTypes()), "do"),
		"fixture":  required(mapping("What cases need.", ast.Keys("fixtures"), fileTypes()), "setup"),
		"param": required(mapping("A parameter.", ast.Keys("params"), object{
			"type": object{"enum": ast.Names(ast.Keys("type"))}, "values": jsonschema.ListOf(jsonschema.Scalar()),
			"min": jsonschema.Scalar(), "max": jsonschema.Scalar(), "doc": jsonschema.Scalar(),
		}), "type"),
		"defaults": defaults(table),
		"repeat": object{"anyOf": []any{jsonschema.Ref("integer"),
			mapping("What ends a repeat.", ast.Keys("repeat"), object{
				"times": jsonschema.Ref("integer"), "for": jsonschema.Ref("duration"), "until": jsonschema.Scalar(),
				"rate": jsonschema.Scalar(), "stages": jsonschema.ListOf(rateStage()),
			})}},
		"took": mapping("Bounds of a time.", ast.Keys("took"), object{
			"min": jsonschema.Ref("duration"), "max": jsonschema.Ref("duration"),
		}),
	}} {
		for name, schema := range more {
			definitions[name] = schema
		}
	}
	root["$defs"] = definitions
	return encode(root)
}

// rateStage is a stage of a repeat.
func rateStage() object {
	return required(mapping("A part of a repeat with a rate of its own.", ast.Keys("stages"), object{
		"for": jsonschema.Ref("duration"), "name": jsonschema.Scalar(), "rate": jsonschema.Scalar(),
		"to": jsonschema.Scalar(),
	}), "for")
}

// roles are the definitions of what a role has.
func roles() object {
	role := mapping("A party.", ast.Keys("roles"), object{
		"buffers": mapOf("buffer"), "guest": jsonschema.Ref("guest"), "provider": jsonschema.Ref("provider"),
		"program": object{"anyOf": []any{jsonschema.ListOf(jsonschema.Scalar()), jsonschema.Ref("program")}},
		"count":   object{"anyOf": []any{jsonschema.Ref("integer"), object{"const": ast.CountHosts}}},
		"device":  jsonschema.Scalar(), "port": jsonschema.Ref("integer"),
		"path": required(
			mapping("One of the port's addresses.", ast.Keys("path"), object{"gid": jsonschema.Scalar()}), "gid",
		),
		"place": required(
			mapping("Where instances run.", ast.Keys("place"), object{"spread": object{"const": "host"}}), "spread",
		),
		"cpu":      object{"type": []string{"integer", "string", "array"}},
		"optional": object{"type": "boolean"},
	})
	role["not"] = jsonschema.Require("guest", "buffers") // a guest has its own memory
	guest := mapping("A WebAssembly program, or a script.", ast.Keys("guest"), object{
		"module": jsonschema.Scalar(), "script": object{"type": "string"}, "args": list(),
		"limits": jsonschema.Ref("limits"),
		"allow":  jsonschema.Ref("allow"), "deterministic": object{"type": "boolean"},
		"env":   object{"type": "object", "additionalProperties": jsonschema.Scalar()},
		"stdin": jsonschema.Ref("input"),
		"files": object{"type": "object", "additionalProperties": jsonschema.Ref("input")},
	})
	guest["oneOf"] = []any{jsonschema.Require("module"), jsonschema.Require("script")}
	program := required(mapping("A native program.", ast.Keys("program"), object{
		"command": jsonschema.ListOf(jsonschema.Scalar()), "cwd": jsonschema.Scalar(), "user": jsonschema.Scalar(),
		"timeout": jsonschema.Ref("duration"), "output": jsonschema.Ref("size"),
		"trace": object{"anyOf": []any{jsonschema.Scalar(), jsonschema.ListOf(jsonschema.Scalar())}},
		"env":   object{"type": "object", "additionalProperties": jsonschema.Scalar()},
		"stdin": jsonschema.Ref("input"),
		"files": object{"type": "object", "additionalProperties": jsonschema.Ref("input")},
	}), "command")
	return object{
		"role":    role,
		"program": program,
		"buffer": required(mapping("Registered memory.", ast.Keys("buffers"), object{
			"size": jsonschema.Ref("size"), "access": jsonschema.Words(verb.AccessNames()),
			"backing": jsonschema.Word(verb.BackingNames()), "fill": jsonschema.Ref("data"),
		}), "size"),
		"guest": guest,
		"input": object{"anyOf": []any{
			jsonschema.Scalar(),
			mapping("What a guest or a program reads.", ast.Keys("input"), object{
				"file": jsonschema.Scalar(), "text": jsonschema.Scalar(),
			}),
		}},
		"allow": mapping("What a guest may do.", ast.Keys("allow"), object{
			"bind": list(), "connect": list(), "devices": list(), "calls": list(),
		}),
		"limits": mapping("What a guest may take.", ast.Keys("limits"), object{
			"time": jsonschema.Ref("duration"), "memory": jsonschema.Ref("size"), "registered": jsonschema.Ref("size"),
			"handles": jsonschema.Ref("integer"), "files": jsonschema.Ref("integer"), "output": jsonschema.Ref("size"),
		}),
	}
}

// settings are the definitions of keys that a file or a case has once.
func settings() object {
	matrix := mapping("Values that it runs with, each combination.", ast.Keys("matrix"), object{
		"exclude": jsonschema.ListOf(object{"type": "object", "additionalProperties": jsonschema.Scalar()}),
	})
	matrix["additionalProperties"] = jsonschema.ListOf(jsonschema.Scalar()) // a name with its values
	matrix["propertyNames"], matrix["minProperties"] = name(), 1
	return object{
		"matrix": matrix,
		"provider": object{"anyOf": []any{
			jsonschema.Word(rdmacore.Providers()),
			mapping("Settings of providers.", ast.Keys("provider"), object{
				"soft": mapping("The soft provider.", ast.Keys("soft"), object{
					"clock": jsonschema.Word([]string{"virtual", "wall"}), "seed": jsonschema.Ref("integer"),
					"link": jsonschema.Word(rdmacore.Links()), "legal": jsonschema.Scalar(),
				}),
				"verbs": mapping("The verbs provider.", ast.Keys("verbs"), object{"device": jsonschema.Scalar()}),
			}),
		}},
		"threshold": required(mapping("A limit on a metric.", ast.Keys("thresholds"), object{
			"metric": jsonschema.Scalar(), "pass": jsonschema.ListOf(jsonschema.Scalar()), "if": jsonschema.Scalar(),
			"abort_on_fail": object{"anyOf": []any{
				object{"type": "boolean"},
				mapping("When.", ast.Keys("abort_on_fail"), object{"after": jsonschema.Ref("duration")}),
			}},
		}), "metric", "pass"),
		"xfail": required(mapping("That and when it is known to fail.", ast.Keys("xfail"), object{
			"when": jsonschema.Scalar(), "reason": jsonschema.Scalar(),
			"raises": mapping("The failure that is expected.", ast.Keys("raises"), object{
				"action": matching(jsonschema.Scalar()), "what": matching(jsonschema.Scalar()),
				"got": matching(jsonschema.Scalar()),
			}),
		}), "reason"),
	}
}

// defaults has its keys, and arguments by verb.
func defaults(table *verb.Table) object {
	schema := mapping("What holds for the whole file.", ast.Keys("defaults"), object{
		"qp": object{"type": "object"}, "within": jsonschema.Ref("duration"),
	})
	properties := schema["properties"].(object)
	for _, v := range table.Verbs() {
		if _, isKey := properties[v.Name]; !isKey {
			properties[v.Name] = object{
				"description": "arguments of all " + v.Name + " that do not give them", "type": "object",
			}
		}
	}
	return schema
}

// fileTypes are the types of the keys of files, cases, fragments and fixtures.  A key that is not here takes anything:
// the checker has the last word.
func fileTypes() object {
	return object{
		"rdmarun": object{"const": ast.Version}, "name": jsonschema.Scalar(), "doc": jsonschema.Scalar(),
		"tags":    jsonschema.ListOf(jsonschema.Scalar()),
		"timeout": jsonschema.Ref("duration"), "stall_timeout": jsonschema.Ref("duration"),
		"params": mapOf("param"), "defaults": jsonschema.Ref("defaults"), "fragments": mapOf("fragment"),
		"fixtures": mapOf("fixture"), "matrix": jsonschema.Ref("matrix"),
		"imports":  object{"type": "object", "propertyNames": name(), "additionalProperties": jsonschema.Scalar()},
		"requires": jsonschema.ListOf(jsonschema.Scalar()), "provider": jsonschema.Ref("provider"),
		"thresholds": jsonschema.ListOf(jsonschema.Ref("threshold")), "xfail": jsonschema.Ref("xfail"),
		"roles": object{
			"type":                 "object",
			"additionalProperties": object{"anyOf": []any{jsonschema.Ref("role"), object{"type": "null"}}},
		},
		"needs": jsonschema.ListOf(jsonschema.Scalar()),
		"scope": jsonschema.Word(ast.Scopes()), "setup": jsonschema.Ref("steps"),
		"teardown": jsonschema.Ref("steps"), "steps": jsonschema.Ref("steps"), "finally": jsonschema.Ref("steps"),
		"do":    jsonschema.Ref("steps"),
		"cases": jsonschema.ListOf(jsonschema.Ref("case")),
	}
}

// mapping is an object with these keys and no others.
func mapping(doc string, keys []ast.Key, types object) object {
	properties := object{}
	for _, key := range keys {
		properties[key.Name] = jsonschema.Documented(types[key.Name], key.Doc)
	}
	return object{"description": doc, "type": "object", "properties": properties, "additionalProperties": false}
}

// required is the mapping with keys that it must have.
func required(schema object, keys ...string) object {
	schema["required"] = keys
	return schema
}

func mapOf(schema string) object {
	return object{"type": "object", "propertyNames": name(), "additionalProperties": jsonschema.Ref(schema)}
}

func list() object { return object{"type": "array"} }

// name is what a parameter, a role or a buffer can be called.
func name() object { return object{"pattern": ast.NameForm} }
