package compile

import (
	"time"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
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
	// Roles are those of the first case; a matrix of the file may change their buffers and devices.
	Roles []testbed.RoleConfig
	Cases []*Case
	Soft  Soft
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

// Soft is how the soft provider runs a program.
type Soft struct {
	Virtual bool // the clock
	Seed    uint64
	Seeded  bool
}

// Options are those that the soft provider is opened with for a case of the program; seed goes before the
// file's own.
func (s Soft) Options(seed *uint64) []rdmacore.Option {
	var options []rdmacore.Option
	if s.Virtual {
		options = append(options, rdmacore.WithVirtualClock())
	}
	switch {
	case seed != nil:
		options = append(options, rdmacore.WithSeed(*seed))
	case s.Seeded:
		options = append(options, rdmacore.WithSeed(s.Seed))
	}
	return options
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
	// Constants are the parameters and the values of the matrices, for expressions; Settings are the
	// latter as text.
	Constants []Constant
	Settings  []Binding
	// Requires must hold, and the provider must have the capabilities Needs, or the case is skipped.
	Requires   []*Requirement
	Needs      []string
	XFail      *XFail // nil: it should pass
	Thresholds []*Threshold
	Setup      []*Step
	Steps      []*Step
	Finally    []*Step
}

// Provider is the provider that the matrices choose for the case, "" when they choose none.
func (c *Case) Provider() string {
	for _, setting := range c.Settings {
		if setting.Name == providerAxis {
			return setting.Value
		}
	}
	return ""
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
	Within          *Value // of a step of steps; nil: no limit
	Took            *Took
	IgnoreLeftovers bool
	Tags            []Tag
	XFail           *XFail // nil: it should pass
	Action          Action
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

func (*Block) isAction()     {}
func (*Repeat) isAction()    {}
func (*Parallel) isAction()  {}
func (*Use) isAction()       {}
func (*Guest) isAction()     {}
func (*Barrier) isAction()   {}
func (*GuestCall) isAction() {}
