package schema

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/jsonschema"
)

// parts are the kinds of records, each with the part that it has ("" for none).
var parts = []struct {
	kind record.Kind
	part string
}{
	{record.RunStart, "run"}, {record.DeviceUsed, "device"}, {record.CaseStart, "start"}, {record.StepEnd, "step"},
	{record.Output, "line"}, {record.Measuring, "measure"}, {record.Measured, "measure"}, {record.Before, "measure"},
	{record.Meshed, "mesh"}, {record.Checked, "threshold"}, {record.CaseEnd, "result"}, {record.CaseRetry, "result"},
	{record.RunEnd, "totals"},
}

// Result is the JSON Schema (2020-12) of one line of `--out jsonl=FILE`, made of the Go types that write it.
// It allows fields that a later version adds: those do not change the version.
func Result() ([]byte, error) {
	types := &typeSchemas{defs: object{}}
	root := types.structure(reflect.TypeFor[record.Record]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "rdmarun record 1"
	root["description"] = "One thing that happened in a run: a line of the records that \"rdmarun run --out " +
		"jsonl=FILE\" writes."
	properties := root["properties"].(object)
	properties["v"] = object{"const": record.Version}
	var kinds []record.Kind
	var conditions []any
	for _, each := range parts {
		kinds = append(kinds, each.kind)
		conditions = append(conditions, object{
			"if":   object{"properties": object{"kind": object{"const": each.kind}}},
			"then": object{"required": []string{each.part}},
		})
	}
	properties["kind"] = object{"enum": kinds}
	root["allOf"] = conditions
	root["$defs"] = types.defs
	return encode(root)
}

// encode writes a schema as it is kept.
func encode(root object) ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(root)
	return text.Bytes(), err
}

// typeSchemas makes schemas of Go types as encoding/json writes them.
type typeSchemas struct{ defs object }

func (s *typeSchemas) of(t reflect.Type) object {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[time.Duration]():
		return object{"type": "integer", "description": "nanoseconds"}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Struct:
		name := strings.ToLower(t.Name())
		if _, known := s.defs[name]; !known {
			s.defs[name] = object{} // what refers to itself finds it
			s.defs[name] = s.structure(t)
		}
		return jsonschema.Ref(name)
	case reflect.Slice:
		return object{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	}
	return object{} // any value
}

// structure is an object with a property for each field; those that are never left out are required.
func (s *typeSchemas) structure(t reflect.Type) object {
	properties, required := object{}, []string{}
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() || field.Anonymous { // the fields of what is embedded follow
			continue
		}
		if name == "" {
			name = field.Name
		}
		properties[name] = s.of(field.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") {
			required = append(required, name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required}
}
