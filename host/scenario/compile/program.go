package compile

import (
	"math"
	"slices"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
)

// Program is a scenario ready to run.
type Program struct {
	File   string
	Name   string
	Doc    string
	Tags   []string
	Params []Binding // in the file's order
	// Given are the parameters that have a value from outside the file, each as -p takes it: "NAME=VALUE".
	Given []string
	// Missing names the parameters without a value: the program cannot run until -p gives one.
	Missing []string
	// Roles are those of the first case; a matrix of the file may change their buffers and devices.
	Roles []testbed.RoleConfig
	Cases []*Case
	// Provider is what the file names for its roles, "" for none.
	Provider string
	// Device is that of roles on verbs that name none; "" for the provider's default.
	Device string
	Soft   Soft
	// Imports are the files with fragments that were read, where they are.
	Imports []string
	// Guests is set if some role is a guest.
	Guests bool
}

// Binding is a name with a value that is known before the run, also as text.
type Binding struct {
	Name, Text string
	Value      any
}

// Soft is how the soft provider runs a program.
type Soft struct {
	Virtual bool // the clock
	Seed    uint64
	Seeded  bool
	// Link is one of rdmacore.Links; "" leaves it to the run.
	Link string
}

// Case is one test.
type Case struct {
	ID      string // FILE or FILE::NAME, with [NAME=VALUE,..] of the matrices: the same in every run
	Name    string
	Tags    []string
	Timeout time.Duration
	// Stall is the time in which a step must end; 0 for any.
	Stall time.Duration
	Roles []testbed.RoleConfig
	// Elsewhere are the roles that other processes play.
	Elsewhere []testbed.RoleConfig
	// Constants are the parameters and the values of the matrices.
	Constants []Binding
	// Provider is the one that the matrices choose for the case, "" when they choose none.
	Provider string
	// Requires must hold, and the provider must have the capabilities Needs, or the case is skipped.
	Requires []*Requirement
	Needs    []Need
	// Meetings are the roles that steps bring together.
	Meetings   []Meeting
	XFail      *XFail // nil: it should pass
	Thresholds []*Threshold
	// Fixtures are set up one after another before Setup.  Those that were begun are torn down after Finally, the
	// last first.
	Fixtures []*Fixture
	// Family is the same number in all cases of the file that may share fixtures, 0 in one that shares none.
	Family  int
	Setup   []*Step
	Steps   []*Step
	Finally []*Step
}

// DefaultTimeout is the timeout of a case for which the scenario sets none.
const DefaultTimeout = time.Minute

// Step is one step.
type Step struct {
	// Span is the action's key, where messages about the step point.
	Span            diag.Span
	Name            *Value // nil: none
	Label           string // the name without its expressions, the same in every round
	If              *Value // nil: always
	Timeout         *Value // nil: the case's
	Within          *Value // of a step of steps; nil: no limit
	Took            *Took
	IgnoreLeftovers bool
	Tags            []Tag
	XFail           *XFail // nil: it should pass
	Action          Action
}

// Inner are the steps of a step of steps, as written: those of fragments and loops once each.
func (s *Step) Inner() []*Step {
	switch action := s.Action.(type) {
	case *Block:
		return action.Steps
	case *Repeat:
		return action.Steps
	case *Use:
		return action.Steps
	case *Parallel:
		return action.Branches
	}
	return nil
}

// appendAll appends steps with those in them to a list.
func appendAll(all, steps []*Step) []*Step {
	for _, step := range steps {
		all = appendAll(append(all, step), step.Inner())
	}
	return all
}

// AllSteps are the steps of the case as written, with those in them.
func (c *Case) AllSteps() (all []*Step) {
	for _, steps := range c.lists() {
		all = appendAll(all, steps)
	}
	return all
}

// lists are the lists of steps of the case, in the order in which they run.
func (c *Case) lists() (lists [][]*Step) {
	for _, fixture := range c.Fixtures {
		lists = append(lists, fixture.Setup)
	}
	lists = append(lists, c.Setup, c.Steps, c.Finally)
	for _, fixture := range slices.Backward(c.Fixtures) {
		lists = append(lists, fixture.Teardown)
	}
	return lists
}

// Actions is how many actions the steps of the case are.
func (c *Case) Actions() (count int) {
	for _, steps := range c.lists() {
		count = min(count+actions(steps), math.MaxInt32)
	}
	return count
}

func actions(steps []*Step) (count int) {
	for _, step := range steps {
		inner := step.Inner()
		if inner == nil {
			count++
			continue
		}
		rounds := 1
		if loop, is := step.Action.(*Repeat); is && loop.Count != nil {
			if known, constant := loop.Count.Constant(); constant {
				rounds, _ = known.(int)
			}
		}
		if per := actions(inner); rounds == 0 || per <= math.MaxInt32/rounds {
			count += rounds * per
		} else {
			count = math.MaxInt32
		}
		count = min(count, math.MaxInt32)
	}
	return count
}

// EachCall calls f for each step of the case that is no step of steps.
func (c *Case) EachCall(f func(*Step, *Call)) {
	for _, step := range c.AllSteps() {
		if call, is := step.Action.(*Call); is {
			f(step, call)
		}
	}
}

// Tag is a word of a step, or a name with a value.
type Tag struct {
	Name  string
	Value *Value // nil for a word
}

// Took bounds the time of a step; nil values do not bound it.
type Took struct {
	Min, Max *Value
	Span     diag.Span
}

func (*Block) isAction()    {}
func (*Repeat) isAction()   {}
func (*Parallel) isAction() {}
func (*Use) isAction()      {}

// Action is what a step does: *Call, *Block, *Repeat, *Use or *Parallel.
type Action interface{ isAction() }

// Call is a verb, or a step of a guest or a barrier (verb.StepVerb).
type Call struct {
	Verb *verb.Verb
	// Role is nil for a roleless verb without one.
	Role *Value
	// Arguments are in the order of the verb's; nil for those without value and default.
	Arguments []*Value
	Expect    []Expectation
	// None is set if nothing may come: no completion, no event.
	None bool
	// Any is set if every result is right, a failure of the call included.
	Any bool
	As  Name

	span diag.Span // of the verb, which defaults have too
}

// Block is a list of steps under one name.
type Block struct {
	Steps []*Step
	// Rounds is set if each of them is a round of a for_each.
	Rounds bool
}

// Parallel is steps that run at the same time, each a branch.
type Parallel struct{ Branches []*Step }

// Repeat runs its steps several times.
type Repeat struct {
	Count *Value // nil: as often as the others let it
	// For is how long rounds begin, Until a condition after each that ends them, Rate how many begin in a second; nil
	// for none.
	For, Until, Rate *Value
	Counter          string // name of the counter, "" for none
	Steps            []*Step
	// Role is the role of all steps, the same in each round; "" where processes of other roles take part.
	Role string
	// All are the steps with those in them, where they are of one role: processes use their indexes here in
	// messages.
	All []*Step
}

// Use is a fragment, expanded: its parameters are names of these steps alone.
type Use struct {
	Fragment string // "" for a round of a for_each, or an instance of a counted role
	With     []Parameter
	Steps    []*Step
}

// Parameter is a fragment's parameter with its value.
type Parameter struct {
	Name  string
	Value *Value
}

// Signature is the type of a function of a guest, a letter for each value: i (i32), I (i64), others for what no
// scenario can give.
type Signature struct{ Params, Results string }

func (*Call) isAction() {}
