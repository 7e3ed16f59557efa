// Package schema has the JSON Schemas of rdmarun's files, for editors and for `rdmarun schema`.  They are
// generated; see rdmarun/host/schema and rdmarun/cmd/rdmarun.
package schema

import _ "embed"

// Scenario is the JSON Schema of scenario files.
//
//go:embed scenario.v1.json
var Scenario []byte

// Result is the JSON Schema of a record, one line of a JSON Lines file.
//
//go:embed result.v1.json
var Result []byte

// Config is the JSON Schema of rdmarun.yaml.
//
//go:embed config.v1.json
var Config []byte
