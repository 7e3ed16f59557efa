// Package verb is the table of the operations of steps, with their code.
//
// A verb is one row. It has its name, its arguments and results with their types, a sentence of documentation, and the
// function that runs it. The checker, the runner and the printers of documentation read the same rows. So a new
// operation is only a new row and its function.
//
// Verbs work on a testbed: the roles of one case with their buffers and endpoints.  It frees what they made.
package verb

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"rdmarun/host/record"
	"rdmarun/host/scenario/testbed"
	"rdmarun/rdmacore"
)

// Table is every verb.  Each is described when it is first asked for; reading the table is safe from many goroutines.
type Table struct {
	names  []string // sorted
	byName map[string]func() *Verb
}

// NewTable builds the table.
func NewTable() *Table {
	t := &Table{byName: make(map[string]func() *Verb)}
	for _, row := range slices.Concat(
		connectionVerbs, identifierVerbs, inquiryVerbs, optionVerbs, addressVerbs, eventVerbs, queuePairVerbs,
		workVerbs, workListVerbs, atomicVerbs, windowVerbs, completionVerbs, sharedQueueVerbs, datagramVerbs,
		memoryVerbs, bufferVerbs, deviceVerbs, faultVerbs, measureVerbs, programVerbs, runnerVerbs,
	) {
		t.byName[row.Name] = sync.OnceValue(func() *Verb {
			row.describe(&row)
			return &row
		})
	}
	t.names = slices.Sorted(maps.Keys(t.byName))
	return t
}

// Lookup returns a verb, or nil.
func (t *Table) Lookup(name string) *Verb {
	if verb := t.byName[name]; verb != nil {
		return verb()
	}
	return nil
}

// Verbs lists all verbs, sorted by name.
func (t *Table) Verbs() []*Verb {
	verbs := make([]*Verb, len(t.names))
	for i, name := range t.names {
		verbs[i] = t.Lookup(name)
	}
	return verbs
}

// Names lists the names of all verbs, sorted.
func (t *Table) Names() []string { return t.names }

// Verb is one row of the table.
type Verb struct {
	Name string
	// Manual is the man page of the operation, "rdma_connect(3)"; empty for the runner's
	// own verbs.
	Manual    string
	Doc       string
	Arguments []Argument
	Results   []Result
	// Scalar is the argument that `verb: value` sets; empty when the verb takes only a mapping.
	Scalar string
	// Roleless verbs work on no role.
	Roleless bool
	// Waits means that the verb waits for something, and so takes `within`.
	Waits bool
	// Measures means that the verb uses what of a Call is for measurements.
	Measures bool
	// OfProgram means that a native program plays the role, OrProgram that one may.
	OfProgram, OrProgram bool
	// Split means that several processes can share a step, each with the part of its roles (Call.PeerConn,
	// Call.Meet).
	Split bool
	// Sends means that the verb posts a request that goes to the peer.  Of some only a few can be Outstanding: those
	// that wait for more of the peer than its acknowledgement.
	Sends, Outstanding bool
	// PrivateData is how much of it the message of the verb carries; nil for a verb without.
	PrivateData *PrivateDataLimits
	// Named means that `as` can name what the verb returned, or the object that it made.
	Named bool
	// Makes is the kind of object that it makes; nil for none.
	Makes *Object
	// Check rejects invalid combinations of arguments, as far as they are known before the run. It is nil for a
	// verb with independent arguments.
	Check func(call *Call) *Refusal
	// Capability is what the provider must be able to do, "" for what every provider can.
	Capability string
	// Names are the results that the arguments name, as far as they are known before the run. It is nil for a verb
	// with fixed names of results.
	Names func(call *Call) []Result
	// Needs is a further capability that the arguments require, as far as they are known before the run; nil for none.
	Needs func(call *Call) string
	// Run runs a call and fills in its outcome.  A *Failure is an expectation that did not hold; an error that wraps a
	// syscall.Errno is compared with `expect: {errno: ..}`.
	Run func(ctx context.Context, call *Call) error
	// describe fills in the facts that follow from the types of the arguments and the result; see define.
	describe func(*Verb)
}

// PrivateDataLimits are the bytes of private data in a message on InfiniBand and RoCE, for connections and datagrams:
// rdma_connect(3), rdma_accept(3), rdma_reject(3).
type PrivateDataLimits struct{ Connection, Datagram int }

// The names of verbs that package compile knows more of than their rows.
const (
	Accept     = "accept"
	Bind       = "bind"
	Connect    = "connect"
	CreateEP   = "create_ep"
	CreateID   = "create_id"
	GetRequest = "get_request"
	Poll       = "poll"
	QueryQP    = "query_qp"
	Rereg      = "rereg"
	WaitEvent  = "wait_event"
)

// Capabilities that verbs need: what a provider or a device may lack.
const (
	CanAtomic      = "device.atomic"     // atomic operations
	CanCount       = "device.counters"   // counters of its own, or that the kernel shows
	CanWindow      = "device.mw"         // memory windows
	CanShare       = "device.srq"        // shared receive queues
	CanStamp       = "device.timestamps" // completions with time stamps
	CanFault       = "fault.link"        // messages that are lost on purpose
	CanFaultPacket = "fault.packet"      // packets on their way, to which more can happen
	CanFaultDevice = "fault.device"      // a device that goes away
)

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
	// Message means that a text is only shown: numbers in it stay as they were written.
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
	// Default is the expected value when `expect` has none; nil: anything.
	Default any
	// Varies means that the value differs between runs or devices: an address or a number that was assigned.
	// Comparisons of runs leave it out.
	Varies bool
	// OfFailure means that a failed call has the field, too, so that `expect` may name it with errno.
	OfFailure bool
	// Hex means that the kernel's manuals and tools write the value in hex, so messages do.
	Hex bool
	Doc string
}

// Outcome is what a verb returned.
type Outcome struct {
	// Fields are in the order of the verb's Results; nil for a field without a value.
	Fields []any
	// Made is the endpoint, the fault or the object that the verb has made.
	Made Bindable
	// Buffers are those with a changed registration.
	Buffers []*testbed.Buffer
	// Record replaces Fields for verbs with fields that the scenario names (decode).
	Record map[string]any
	// Hint is what to look at if a field is not as expected; it may be empty.
	Hint string
	// NoDefaults skips the default expectations, which do not fit this outcome.
	NoDefaults bool
	// Summary is the outcome in a few words, for the timeline; nil if there is nothing to add.  It may be asked for
	// when the Call is another step's already, so it is the method of a result: see define.
	Summary func() string
}

// Refusal is why arguments do not go together.
type Refusal struct {
	Argument string // which one it is about
	// Meaningless means that the argument has no effect here, with any value.  One of `defaults` is then left out:
	// it is for other steps.
	Meaningless bool
	Message     string
	Hint        string
}

// failure is the refusal of arguments that were known only in the run.
func (r *Refusal) failure() *testbed.Failure {
	return &testbed.Failure{What: r.Argument + ": " + r.Message, Hint: r.Hint}
}

// Bindable is an object that `as` gives a name to.
type Bindable interface{ Bind(name string) }

// Argument returns the index of an argument, or -1.
func (v *Verb) Argument(name string) int {
	return slices.IndexFunc(v.Arguments, func(a Argument) bool { return a.Name == name })
}

// Result returns the index of a result, or -1.
func (v *Verb) Result(name string) int {
	return slices.IndexFunc(v.Results, func(r Result) bool { return r.Name == name })
}

// MakesFault reports whether a name that a step gives its result is that of a fault.
func (v *Verb) MakesFault() bool { return v.Makes != nil && v.Makes.Type == FaultName }

// CanFail reports whether the verb calls the core, which may answer with an errno.
func (v *Verb) CanFail() bool { return v.Manual != "" }

// Call is one run of a verb.  The next step of the branch reuses it.
type Call struct {
	Verb    *Verb
	Testbed *testbed.Testbed
	Role    *testbed.Role // nil for a roleless verb
	// Arguments are in the order of the verb's, in the Go types that Type documents, with defaults filled in; nil for
	// none.
	Arguments []any
	// Deferred marks, in Verb.Check before the run, the arguments with values that are known only in the run; nil for
	// none.
	Deferred []bool
	// Outcome is what the step returned and made.
	Outcome Outcome
	// Measured takes the figures of one size, of each end that has any.
	Measured func([]*record.Measure)
	// Progress reports the current part of a measurement; may be nil.
	Progress func(what string, at, of int)
	// PeerConn connects to the process that plays the other one of two roles; nil where all roles are here.
	PeerConn func(from, to string) PeerConn
	// Meshed takes what a mesh has found: its record for each size, and the figures of each pair.
	Meshed func(found []*record.Mesh, pairs [][]*record.Measure)
	// MeshPeers is the other processes of a mesh; nil where all roles are here.
	MeshPeers MeshPeers
	// AtOnce runs f so often at once, each with the lock of the testbed while it works, until all have ended. The
	// first error cancels the others, and AtOnce returns it.
	AtOnce func(ctx context.Context, count int, f func(ctx context.Context, i int) error) error
	// Meet waits until other processes have done their part, too; nil where all roles are here.
	Meet func(ctx context.Context) error
	// Measuring is given what a measurement has done in each interval of that length while it runs; no Interval,
	// nothing.
	Interval  time.Duration
	Measuring func([]*record.Measure)
	// ShowsIntervals is set where Measuring also takes the intervals of a measurement from another process.
	ShowsIntervals bool
	// Abort is given the figures so far and reports whether to end the measurement; nil to let it run.
	Abort func([]*record.Measure) bool
}

// made notes the object that the step has made, unless that failed.
func (c *Call) made(object Bindable, err error) error {
	if err == nil {
		c.Outcome.Made = object
	}
	return err
}

// adopt makes an endpoint of an id that the step has made.
func (c *Call) adopt(what string, id *rdmacore.ID) *testbed.Endpoint {
	endpoint := c.Role.Adopt(what, id)
	c.Outcome.Made = endpoint
	return endpoint
}

// Endpoint is the endpoint that the argument `ep` names, or the role's only one with a queue pair; nil where there is
// none.
func (c *Call) Endpoint() *testbed.Endpoint {
	at := c.Verb.Argument("ep")
	if c.Role == nil || at < 0 || at >= len(c.Arguments) {
		return nil
	}
	endpoint, err := c.Role.OnlyEndpoint()
	if name, given := c.Arguments[at].(string); given {
		endpoint, err = c.Role.Endpoint(name)
	}
	if err != nil {
		return nil
	}
	return endpoint
}

// named finds a buffer of the step's role, or of the role in the name.
func (c *Call) named(value BufferName) (*testbed.Buffer, error) {
	role := c.Role
	if value.Role != "" {
		var err error
		if role, err = c.Testbed.Role(value.Role); err != nil {
			return nil, err
		}
	}
	return role.Buffer(value.Name)
}
