// Package ast checks the form of a scenario: known keys, the kinds of value they hold, one action a
// step.  It makes the tree of a File out of nodes; names and values are still nodes, which package
// compile reads.
package ast

import "rdmarun/host/scenario/syntax"

// File is a scenario as written.
type File struct {
	Root      *syntax.Node
	Name      *syntax.Node
	Doc       *syntax.Node
	Tags      []*syntax.Node
	Timeout   *syntax.Node
	Stall     *syntax.Node // stall_timeout
	Matrix    *Matrix
	Imports   []*Import
	Requires  []*syntax.Node
	Soft      *Soft
	Defaults  *Defaults
	Params    []*Param
	Roles     []*Role
	Setup     []*Step
	Steps     []*Step
	Cases     []*Case
	Finally   []*Step
	Fragments []*Fragment
	// Thresholds are limits on what the run measures.
	Thresholds []*Threshold
}

// Import is another file whose fragments are used under a prefix.
type Import struct {
	Name *syntax.Node // the key
	Path *syntax.Node
}

// Soft is how the soft provider runs the file.
type Soft struct {
	Clock, Seed *syntax.Node
}

// Defaults are arguments for steps that do not give them.
type Defaults struct {
	QueuePair *syntax.Node
	Within    *syntax.Node
	// Verbs are mappings of arguments by verb.
	Verbs []syntax.Pair
}

// Param is a parameter of a file or of a fragment.
type Param struct {
	Name    *syntax.Node // the key
	Type    string
	Default *syntax.Node
	Min     *syntax.Node
	Max     *syntax.Node
	Values  []*syntax.Node
	Doc     *syntax.Node
}

// Role is one party.
type Role struct {
	Name    *syntax.Node // the key
	Count   *syntax.Node // nil for a role that is one party
	Device  *syntax.Node
	Buffers []*Buffer
	Guest   *Guest
	// Port, GID and Spread say where it is; nil where the file does not.
	Port, GID, Spread *syntax.Node
	// CPUs are the words of `cpu`.
	CPUs []*syntax.Node
	// Optional guests may be missing.
	Optional bool
}

// Buffer is registered memory of a role.
type Buffer struct {
	Name   *syntax.Node // the key
	Size   *syntax.Node
	Access []*syntax.Node
	// Backing and Fill are nil where the file does not say.
	Backing, Fill *syntax.Node
}

// Guest is the program that plays a role.
type Guest struct {
	Node   *syntax.Node
	Module *syntax.Node
	Args   []*syntax.Node
	// Its limits.
	Time, Memory, Registered, Handles, Files, Output *syntax.Node
}

// Case is one named test of a file.
type Case struct {
	Name     *syntax.Node
	Tags     []*syntax.Node
	Timeout  *syntax.Node
	Matrix   *Matrix
	Requires []*syntax.Node
	XFail    *XFail
	Steps    []*Step
	// Thresholds are limits on what the case measures, beside those of the file.
	Thresholds []*Threshold
}

// XFail says that a case is known to fail.
type XFail struct {
	Node, When, Reason *syntax.Node
	// Raises is a mapping of what the failure is; nil: any.
	Raises *syntax.Node
}

// Fragment is a list of steps with parameters.
type Fragment struct {
	Name   *syntax.Node // the key
	Params []*Param
	Steps  []*Step
}

// IsLibrary tells whether a file has only fragments, and so nothing to run.
func (f *File) IsLibrary() bool { return f.Steps == nil && f.Cases == nil && len(f.Fragments) > 0 }
