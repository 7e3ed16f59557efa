// Package scenario reads, checks and runs scenario files.
//
// A file passes through stages, each a package below this one: bytes become nodes (syntax), nodes a
// file (ast), a file a program (compile) with its verbs (verb) and expressions (expression); a program
// runs (exec) on a testbed (testbed) and leaves records (host/record), which outputs read (host/output).
package scenario
