// Package ast checks the form of a scenario: known keys, the kinds of value they hold, one action a
// step.  It makes the tree of a File out of nodes; names and values are still nodes, which package
// compile reads.
package ast
