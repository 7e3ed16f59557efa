package compile

import (
	"math"
	"slices"
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/testbed"
	"rdmarun/host/scenario/verb"
	"rdmarun/rdmacore"
)

// Scenario is a file ready to run.
type Scenario struct {
	File   string
	Name   string
	Doc    string
	Tags   []string
	Params []Binding // in the file's order
	// Given are the parameters that have a value from outside the file, each as -p takes it: "NAME=VALUE".
	Given []string
	// Missing names the parameters without a value: the scenario cannot run until -p gives one.
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
	// Guests is set if some role is a guest, Programs if a native program plays some role.
	Guests, Programs bool
}

// Binding is a name with a value that is known before the run, also as text.
type Binding struct {
	Name, Text string
	Value      any
}

// Soft is how the soft provider runs a scenario.
type Soft struct {
	Virtual bool // the clock
	Seed    uint64
	Seeded  bool
	// Link is one of rdmacore.Links; "" leaves it to the run.
	Link string
	// Legal is which legal choices soft makes; the zero value leaves it to the run.
	Legal rdmacore.Legal
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
	// Family is the same in all cases of the file that may share fixtures, "" in one that shares none.  Across is set
	// if it is so in cases of other files, too, which have the same fixtures in the same surroundings.
	Family  string
	Across  bool
	Setup   []*Step
	Steps   []*Step
	Finally []*Step
}

// defaultTimeout is the timeout of a case for which the scenario sets none.
const defaultTimeout = time.Minute

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

// inner are the steps of a step of steps, as written: those of fragments and loops once each.
func (s *Step) inner() []*Step {
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
		all = appendAll(append(all, step), step.inner())
	}
	return all
}

// allSteps are the steps of the case as written, with those in them.
func (c *Case) allSteps() (all []*Step) {
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

// Actions is how many actions a run of the case counts at least, in which these fixtures are set up and torn down.
// exact is false where only the run knows the number.  Steps with a condition may be skipped.
func (c *Case) Actions(setUp, tornDown []*Fixture) (least int, exact bool) {
	exact = true
	for _, fixture := range setUp {
		least, exact = add(least, exact, 1, fixture.Setup)
	}
	for _, fixture := range tornDown {
		least, exact = add(least, exact, 1, fixture.Teardown)
	}
	for _, steps := range [][]*Step{c.Setup, c.Steps, c.Finally} {
		least, exact = add(least, exact, 1, steps)
	}
	return least, exact
}

// add adds the actions of several rounds of steps.
func add(least int, exact bool, rounds int, steps []*Step) (int, bool) {
	per, sure := actions(steps)
	if rounds > 0 && per > math.MaxInt32/rounds {
		return math.MaxInt32, exact && sure
	}
	return min(least+rounds*per, math.MaxInt32), exact && (sure || rounds == 0)
}

func actions(steps []*Step) (least int, exact bool) {
	exact = true
	for _, step := range steps {
		if step.If != nil {
			wanted, constant := step.If.Constant()
			if !constant {
				exact = false
			}
			if wanted != true {
				continue
			}
		}
		inner := step.inner()
		if inner == nil {
			least = min(least+1, math.MaxInt32)
			continue
		}
		rounds := 1
		if loop, is := step.Action.(*Repeat); is {
			var known bool
			rounds, known = loop.leastRounds()
			exact = exact && known
		}
		least, exact = add(least, exact, rounds, inner)
	}
	return least, exact
}

// leastRounds is how many rounds a loop has at least; exact means that it has no more.  One with a time has a round
// unless the time is 0.
func (r *Repeat) leastRounds() (rounds int, exact bool) {
	if r.For != nil {
		limit, constant := r.For.Constant()
		if duration, _ := limit.(time.Duration); duration <= 0 {
			return 0, constant
		}
	}
	count, constant := any(nil), false
	if r.Count != nil {
		count, constant = r.Count.Constant()
	}
	times, _ := count.(int)
	switch {
	case r.Count != nil && (!constant || times == 0):
		return 0, constant
	case r.For != nil || r.Until != nil || r.Count == nil:
		return 1, constant && times == 1
	}
	return times, true
}

// EachCall calls f for each step of the case that is no step of steps.
func (c *Case) EachCall(f func(*Step, *Call)) {
	for _, step := range c.allSteps() {
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
	Stages           []RateStage // instead of For and Rate
	Counter          string      // name of the counter, "" for none
	Steps            []*Step
	// Role is the role of all steps, the same in each round; "" where processes of other roles take part.
	Role string
	// All are the steps with those in them, where they are of one role: processes use their indexes here in
	// messages.
	All []*Step
}

// RateStage is a part of a repeat in which its rate is constant or changes evenly.
type RateStage struct {
	Name string
	For  *Value
	// Rate is the rate at the beginning, nil for that at the end of the stage before. To is the rate at the end, nil
	// for that at the beginning.
	Rate, To *Value
}

// StageNames are the names of the stages.
func (r *Repeat) StageNames() (names []string) {
	for i := range r.Stages {
		names = append(names, r.Stages[i].Name)
	}
	return names
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

// Signature is the type of a function of a guest, a letter for each value. i is i32 and I is i64. Other letters are
// for types that scenarios do not have.
type Signature struct{ Params, Results string }

func (*Call) isAction() {}
