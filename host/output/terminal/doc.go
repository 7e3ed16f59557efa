// Package terminal has the outputs of a run that a terminal shows: each reads records (package record) and knows
// nothing else of the run.
package terminal
