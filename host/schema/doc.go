// Package schema makes the JSON Schemas of scenarios and of records.  That of scenarios comes from the tables
// of the checker: the keys of package ast and the verbs of package verb.  It is laxer than the checker, which knows names, units and expressions,
// and never stricter: editors complete and document with it.
//
// The result is kept in the folder schema, from where the binary embeds it; after a change of the language:
//
//	go generate ./host/schema
package schema

//go:generate go run ./generate ../../schema
