// Package scenario reads, checks and runs scenario files.
//
// A file passes through stages, each a package below this one: bytes become nodes (syntax), nodes a
// file (shape), a file a program (plan) with its verbs (verb) and expressions (expression); a program
// runs (run) on a lab (lab) and leaves records (record), which outputs read (report).
package scenario
