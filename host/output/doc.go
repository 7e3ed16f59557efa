// Package output has the outputs of a run that are files.  Each reads records (package record): while the
// run goes on, or later from the record of truth (package jsonl), and cannot tell the difference.
package output
