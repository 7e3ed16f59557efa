// Package compile makes a program of a scenario: names are resolved, fragments expanded, expressions
// compiled, and every value that can be known before the run is known.
//
// What a plan holds has been checked, so a run meets only what the world does, never a typing mistake.
package compile
