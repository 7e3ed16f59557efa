package verb

import (
	"context"

	"rdmarun/host/scenario/testbed"
)

// Verb is one row of the table.
type Verb struct {
	Name string
	// Manual is the page that says what the operation does, "rdma_connect(3)"; empty for the runner's
	// own verbs.
	Manual    string
	Doc       string
	Arguments []Argument
	Results   []Result
	// Scalar is the argument that `verb: value` stands for; empty when the verb wants a mapping.
	Scalar string
	// Roleless verbs concern no role.
	Roleless bool
	// Waits tells that the verb waits for something, and so takes `within`.
	Waits bool
	// Measures tells that the verb uses Call.Measured, Call.Advance and Call.Abort.
	Measures bool
	// Yields is what `as` names.
	Yields Yield
	// Check looks at what arguments mean together, of those that are known; nil where they do not depend on
	// each other.  It is asked before the run and again by Run.
	Check func(call *Call) *Refusal
	// Capability is what the provider must be able to do, "" for what every provider can.
	Capability string
	// Needs is a capability that depends on the arguments, of those that are known; nil where none does.
	Needs func(call *Call) string
	// Run does it, and leaves Call.Outcome.  A *Failure is an expectation that did not hold; an error that wraps a
	// syscall.Errno is compared with `expect: {errno: ..}`.
	Run func(ctx context.Context, call *Call) error
	// describe fills in what the types of arguments and result say: define.
	describe func(*Verb)
}

// Yield is what a verb leaves behind for later steps.
type Yield int

const (
	// Nothing: `as` is an error.
	Nothing Yield = iota
	// Value: the results, for expressions.
	Value
	// NewEndpoint: an endpoint of the step's role, and the results.
	NewEndpoint
	// NewFault: a fault, for heal, and the results.
	NewFault
	// NewDomain: a protection domain of the step's role.
	NewDomain
	// NewQueue: a completion queue of the step's role.
	NewQueue
	// NewSharedQueue: a shared receive queue of the step's role, and the results.
	NewSharedQueue
	// NewHandle: an address handle of the step's role.
	NewHandle
	// NewWindow: a memory window of the step's role, and the results.
	NewWindow
)

// MakesObject tells whether `as` names an object of the step's role that is no endpoint.
func (y Yield) MakesObject() bool { return y >= NewDomain }

// Argument is one argument of a verb.
type Argument struct {
	Name     string
	Type     Type
	Required bool
	// Default is the value of an argument that is not given, in the Go type of Type; nil for none.
	Default any
	// Min and Max bound integers, sizes (bytes) and durations (nanoseconds); both zero: no bounds.
	Min, Max int64
	// Words are the possible words of a Word, and of Words.
	Words []string
	// Fields are the keys of Options.
	Fields []Argument
	// Group joins arguments of which exactly one must be given.
	Group string
	// Message tells that a text is for people, and nothing is made of it: numbers stand there as they were written.
	Message bool
	// Inline data has its keys (text, hex...) among the verb's own arguments.
	Inline bool
	Doc    string
}

// Result is one field of what a verb returns, for `expect` and for expressions.
type Result struct {
	Name  string
	Type  Type
	Words []string
	// Default is what the field must be unless `expect` says otherwise; nil: anything.
	Default any
	// Varies tells that the value is another one in each run or on each device: a number or an address that
	// was given out.  Who compares two runs leaves it out.
	Varies bool
	// OfFailure tells that a call that fails has the field, too, so that `expect` may name it beside errno.
	OfFailure bool
	// Hex tells that the kernel's manuals and tools write the value in hex, so messages do.
	Hex bool
	Doc string
}

// Outcome is what a verb returned.
type Outcome struct {
	// Fields are in the order of the verb's Results; nil for a field without a value.
	Fields []any
	// Made is the endpoint, the fault or the object that the verb has made.
	Made Bindable
	// Buffers are those whose registration changed.
	Buffers []*testbed.Buffer
	// Record replaces Fields for verbs whose fields the scenario names (decode).
	Record map[string]any
	// NoDefaults lifts the default expectations, for an outcome that they do not fit.
	NoDefaults bool
	// Summary is the outcome in a few words, for the timeline; empty: success, nothing to add.
	Summary func() string
}

// Refusal is why arguments do not go together.
type Refusal struct {
	Argument string // which one it is about
	// Meaningless tells that no value of the argument means anything here.  One of `defaults` is then left
	// out: it is for the steps where it means something.
	Meaningless bool
	Message     string
	Hint        string
}

// failure is the refusal of arguments that only the run knew.
func (r *Refusal) failure() *testbed.Failure {
	return &testbed.Failure{What: r.Argument + ": " + r.Message, Hint: r.Hint}
}

// Bindable is an object that `as` gives a name to.
type Bindable interface{ Bind(name string) }

// Argument returns the index of an argument, or -1.
func (v *Verb) Argument(name string) int {
	for i := range v.Arguments {
		if v.Arguments[i].Name == name {
			return i
		}
	}
	return -1
}

// Result returns the index of a result, or -1.
func (v *Verb) Result(name string) int {
	for i := range v.Results {
		if v.Results[i].Name == name {
			return i
		}
	}
	return -1
}

// CanFail tells whether the verb calls the core, which may answer with an errno.
func (v *Verb) CanFail() bool { return v.Manual != "" }
