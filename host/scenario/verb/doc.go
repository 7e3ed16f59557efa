// Package verb is the table of what a step can do, and the doing of it.
//
// A verb is one row: its name, its arguments and results with their types, a sentence of
// documentation, and the function that runs it.  The checker, the runner and whatever prints
// documentation read the same rows, so a new operation is a new row and its function, nothing else.
//
// A Testbed is what verbs work on: the roles of one case with their buffers and endpoints, on one
// provider.  It frees everything it made, in reverse order, whatever happened in between.
package verb
