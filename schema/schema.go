// Package schema has the JSON Schemas of rdmarun's files, for editors and for `rdmarun schema`.  They are
// generated; see rdmarun/host/schema.
package schema

import _ "embed"

// Scenario is the JSON Schema of scenario files.
//
//go:embed scenario.v1.json
var Scenario []byte
