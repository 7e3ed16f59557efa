package plan

import (
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/lab"
	"rdmarun/host/scenario/verb"
)

// Program is a scenario ready to run.
type Program struct {
	File   string
	Name   string
	Doc    string
	Tags   []string
	Params []Binding // with their values as text, in the file's order
	// Constants are the same values for expressions.
	Constants []Constant
	// Missing names the parameters without a value: the program cannot run until -p gives one.
	Missing []string
	Roles   []lab.RoleConfig
	Cases   []*Case
	// Guests tells that some role is a guest.
	Guests bool
}

// Binding is a parameter with its value as text.
type Binding struct{ Name, Value string }

// Constant is a name whose value is known before the run.
type Constant struct {
	Name  string
	Value any
}

// Case is one test.
type Case struct {
	ID      string // FILE or FILE::NAME, the same in every run
	Name    string
	Tags    []string
	Timeout time.Duration
	Setup   []*Step
	Steps   []*Step
	Finally []*Step
}

// DefaultTimeout is how long a case may take when the scenario does not say.
const DefaultTimeout = time.Minute

// Step is one step.
type Step struct {
	// Span is the action's key, where messages about the step point.
	Span            diag.Span
	Name            *Value // nil: none
	Label           string // the name without its expressions, the same in every round
	If              *Value // nil: always
	Timeout         *Value // nil: the case's
	Took            *Took
	IgnoreLeftovers bool
	Action          Action
}

// Took bounds the time of a step; nil values do not bound it.
type Took struct {
	Min, Max *Value
	Span     diag.Span
}

// Action is what a step does: *Call, *Block, *Repeat, *Use, *Guest or *Barrier.
type Action interface{ isAction() }

// Call is a verb.
type Call struct {
	Verb *verb.Verb
	// Role is nil for a roleless verb without one.
	Role *Value
	// Arguments are in the order of the verb's; nil for those without value and default.
	Arguments []*Value
	Expect    []Expectation
	// As is the name for the result, "" for none.
	As string
}

// Block is a list of steps under one name.
type Block struct{ Steps []*Step }

// Repeat runs its steps several times.
type Repeat struct {
	Count   *Value
	Counter string // name of the counter, "" for none
	Steps   []*Step
}

// Use is a fragment, expanded: its parameters are names of these steps alone.
type Use struct {
	Fragment string
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
	As        string
}

// Barrier is where guests and the timeline meet.
type Barrier struct {
	Name   *Value
	Roles  []*Value
	Within *Value
}

func (*Call) isAction()    {}
func (*Block) isAction()   {}
func (*Repeat) isAction()  {}
func (*Use) isAction()     {}
func (*Guest) isAction()   {}
func (*Barrier) isAction() {}
