// Package jsonl writes and reads the record of truth: one record a line, as JSON.
package jsonl
