package compile

import (
	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// Action is what a step does: *Call, *Block, *Repeat, *Use, *Parallel, *Guest,
// *GuestCall or *Barrier.
type Action interface{ isAction() }

// Call is a verb.
type Call struct {
	Verb *verb.Verb
	// Role is nil for a roleless verb without one.
	Role *Value
	// Arguments are in the order of the verb's; nil for those without value and default.
	Arguments []*Value
	Expect    []Expectation
	// None tells that nothing must come: no completion, no event.
	None bool
	// Any tells that whatever comes is right, a failure of the call included.
	Any bool
	As  Name

	span diag.Span // of the verb, which defaults have too
}

// Block is a list of steps under one name.
type Block struct {
	Steps []*Step
	// Rounds tells that each of them is a round of a for_each.
	Rounds bool
}

// Parallel is steps that run at the same time, each a branch.
type Parallel struct{ Branches []*Step }

// Repeat runs its steps several times.
type Repeat struct {
	Count   *Value
	Counter string // name of the counter, "" for none
	Steps   []*Step
}

// Use is a fragment, expanded: its parameters are names of these steps alone.
type Use struct {
	Fragment string // "" for a round of for_each, whose values are such names, too
	With     []Parameter
	Steps    []*Step
}

// Parameter is a fragment's parameter with its value.
type Parameter struct {
	Name  string
	Value *Value
}

// Guest is a step of a guest.
type Guest struct {
	Operation string // start, run, wait or stop
	Role      *Value
	Arguments []*Value // nil: those of the role
	Within    *Value
	Expect    []Expectation
	As        Name
}

// GuestCall calls a function of a guest.
type GuestCall struct {
	Role      *Value
	Function  string
	Signature Signature
	Arguments []*Value
	Within    *Value
	Expect    []Expectation
	As        Name
}

// Signature is the type of a function of a guest, a letter for each value: i (i32), I (i64), others for what no
// scenario can give.
type Signature struct{ Params, Results string }

// Barrier is where guests, branches of a parallel step and the timeline meet.
type Barrier struct {
	Name   *Value
	Roles  []*Value
	Within *Value
	// Own are the branches that the step stands in, Others those that must come to a barrier of that name.
	Own    []int
	Others []testbed.Branch
}

func (*Call) isAction() {}
