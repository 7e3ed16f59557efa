// Package expression finds $(...) in the values of a scenario, compiles what is inside against the
// names in scope, and evaluates it.  It is the only package that imports the expression library.
//
// Expressions are compiled once, before the run, so a typing mistake is a message with a position and
// never a surprise in the middle of a test.  They have no I/O, no clock and no loops of their own.
package expression
