package verb

import (
	"encoding/binary"
	"reflect"
	"strings"

	"rdmarun/host/scenario/diag"
	"rdmarun/host/scenario/testbed"
)

// Type is the type of an argument or a result.  Package compile reads arguments of each type; a verb
// gets them in the Go type named after the semicolon.
type Type int

const (
	Integer     Type = iota // decimal, 0x or 0o; int
	Unsigned                // the same of 64 bits without a sign, -1 for all of them; uint64
	Size                    // bytes, with a unit from 1 KiB up ("4KiB"); int
	Duration                // a number with its unit ("250ms"); time.Duration
	Boolean                 // true or false; bool
	Word                    // one of the words listed; string
	Words                   // a list of the words listed; []string
	Text                    // any text; string
	Data                    // bytes, written {text}, {hex}, {byte}, {repeat, times} or {fields}; DataValue
	Buffer                  // the name of a buffer of the step's role, or ROLE.NAME; BufferName
	Content                 // what Buffer or Data takes; BufferName or DataValue
	Endpoint                // the name that an earlier step's `as` gave in the step's role; string
	Remote                  // memory of the peer, as {addr, rkey} or ROLE.NAME; RemoteMemory
	Peer                    // a role, an IP address or a host name; string
	Address                 // an IP address of this machine, or "any"; string
	Layout                  // the integers in a buffer, [{u32: name}..]; FieldLayout
	QueuePair               // attributes of a queue pair; QueuePairAttributes
	Arguments               // a mapping with more arguments of the same verb; it is merged into them
	Status                  // the status of a CM event: 0, an errno or a reject reason; int
	FaultName               // the name that an earlier fault step's `as` gave; string
	Domain                  // the name that an earlier alloc_pd's `as` gave in the step's role; string
	Queue                   // the name that an earlier create_cq's `as` gave in the step's role; string
	SharedQueue             // the name that an earlier create_srq's `as` gave in the step's role; string
	Handle                  // the name that an earlier create_ah's `as` gave in the step's role; string
	Window                  // the name that an earlier alloc_mw's `as` gave in the step's role; string
	Roles                   // a list of two roles; []string
	Instances               // the name of a counted role; []string with those of its instances
	Pairs                   // which of a role's instances meet, all, {random: 4}, [[0, 1]]; MeshPairs
	Role                    // a role of the file; string
	Rights                  // a list of access rights to memory; rdmacore.Access
	PeerRights              // a list of what a peer may do by a queue pair or a window; rdmacore.Access
	Fields                  // a list of fields of completions; rdmacore.WCFields
	Condition               // an expression that must be true, $( ) around it or not; ConditionValue
	Fraction                // a number from 0 to 1, also as a percentage; float64
	Sizes                   // one size, a list of them, or {pow2: [2, 8MiB]}; []int
	Rate                    // bits a second with a unit ("100Gbit/s"); float64
	Number                  // a number, also a fraction; float64
	Pattern                 // a regular expression; *regexp.Regexp
	UnitMap                 // a mapping of names to units, {average: Gbit/s}; Units
	Options                 // a mapping with the argument's Fields as keys; map[string]any
	OptionList              // a list of such mappings; []map[string]any
	// counters of the role's device with matchers of how much they grew, {port_rcv_errors: {delta: 0}}; CounterChecks
	Counters
	// an integer, a size, a duration, a boolean or text, by how it looks; never an argument of a verb
	Any
	Types // their number
)

// types has the name of each type in messages and documentation; those of objects are in their table.
var types = [Types]string{
	Integer:    "an integer",
	Unsigned:   "an integer of 64 bits",
	Size:       "a size (4KiB)",
	Duration:   "a duration (250ms)",
	Boolean:    "true or false",
	Word:       "a word",
	Words:      "a list of words",
	Text:       "text",
	Data:       "data ({text: ..}, {hex: ..}, {fields: ..})",
	Buffer:     "a buffer",
	Content:    "a buffer or data",
	Remote:     "remote memory ({addr: .., rkey: ..})",
	Peer:       "a role, an IP address or a host name",
	Address:    "an IP address of this machine",
	Layout:     "a list of integers ([{u32: name}])",
	QueuePair:  "queue pair attributes",
	Arguments:  "a mapping with arguments",
	Status:     "an event's status",
	Roles:      "a list of two roles",
	Instances:  "a counted role",
	Pairs:      "pairs (all, {random: 4}, [[0, 1]])",
	Role:       "a role",
	Rights:     "a list of rights ([LOCAL_WRITE])",
	PeerRights: "a list of rights ([REMOTE_READ])",
	Fields:     "a list of fields ([STANDARD, COMPLETION_TIMESTAMP])",
	Condition:  "a condition",
	Fraction:   "a number from 0 to 1 (5%)",
	Sizes:      "sizes ([64, 4KiB] or {pow2: [2, 8MiB]})",
	Rate:       "a rate (100Gbit/s)",
	Number:     "a number",
	Pattern:    "a regular expression",
	UnitMap:    "units ({average: Gbit/s})",
	Options:    "a mapping",
	OptionList: "a list of mappings",
	Counters:   "counters ({port_rcv_errors: {delta: 0}})",
	Any:        "a value",
}

// String is the type's name in messages and documentation.
func (t Type) String() string {
	if object := ObjectOf(t); object != nil {
		return article(object.What)
	}
	return types[t]
}

// Object is a kind of objects that steps make and name with `as`, for later steps to use.
type Object struct {
	// Type is that of arguments that name one.
	Type Type
	// What is its word in messages, Maker the verb that makes one, or the most common of them.
	What, Maker string
	// Unknown is the code of a name that no step before has given.
	Unknown diag.Code
	// OfCase is set if it belongs to the case, and not to the step's role.
	OfCase bool
	// field is the Go type of arguments, find looks one up by its name.
	field reflect.Type
	find  func(call *Call, name string) (any, error)
}

// objects is the table of them.  Package testbed keeps and frees them.
var objects = []*Object{
	{
		Type: Endpoint, What: "endpoint", Maker: CreateEP, Unknown: diag.UnknownEndpoint,
		field: reflect.TypeFor[*testbed.Endpoint](),
		find:  func(call *Call, name string) (any, error) { return call.Role.Endpoint(name) },
	},
	{
		Type: FaultName, What: "fault", Maker: "fault", Unknown: diag.UnknownFault, OfCase: true,
		field: reflect.TypeFor[*testbed.Fault](),
		find:  func(call *Call, name string) (any, error) { return call.Testbed.Fault(name) },
	},
	objectsOf(Domain, testbed.Domains),
	objectsOf(Queue, testbed.Queues),
	objectsOf(SharedQueue, testbed.SharedQueues),
	objectsOf(Handle, testbed.Handles),
	objectsOf(Window, testbed.Windows),
}

func objectsOf[T any](names Type, kind testbed.Kind[T]) *Object {
	return &Object{
		Type: names, What: kind.What, Maker: kind.Maker, Unknown: diag.UnknownObject,
		field: reflect.TypeFor[*testbed.Object[T]](),
		find:  func(call *Call, name string) (any, error) { return kind.Find(call.Role, name) },
	}
}

// ObjectOf is what values of a type name; nil for a type that names no object.
func ObjectOf(t Type) *Object {
	for _, object := range objects {
		if object.Type == t {
			return object
		}
	}
	return nil
}

// article puts one before a noun.
func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an " + noun
	}
	return "a " + noun
}

// ConditionValue is a condition with its text, for the message when it does not hold.
type ConditionValue struct {
	Holds bool
	Text  string
	// Operands are what it compares, each with its value; of a condition that does not hold.
	Operands []string
}

// BufferName names a buffer of a role; Role is empty for the step's own role.
type BufferName struct{ Role, Name string }

// String is the name as a scenario writes it.
func (b BufferName) String() string {
	if b.Role == "" {
		return b.Name
	}
	return b.Role + "." + b.Name
}

// DataValue is bytes that a scenario wrote.
type DataValue struct {
	Bytes []byte
	// Pattern means that the bytes may be repeated to fill a range. text, hex and byte are patterns, fields and
	// repeat/times have a length of their own.
	Pattern bool
	// Every means that it is one value for each byte of a range.  The default end is that of the buffer.
	Every bool
}

// Filling is the data as it is written to memory.
func (d DataValue) Filling() testbed.Filling {
	return testbed.Filling{Bytes: d.Bytes, Repeated: d.Pattern}
}

// CounterChecks are bounds of the growth of counters.
type CounterChecks []CounterCheck

// CounterCheck is one of them.
type CounterCheck struct {
	Name string
	Span diag.Span // of the name in the file
	// Check reports whether a growth is right, and in words what would be.
	Check func(delta int) (ok bool, want string)
}

// String is the names.
func (c CounterChecks) String() string {
	names := make([]string, len(c))
	for i := range c {
		names[i] = c[i].Name
	}
	return strings.Join(names, ",")
}

// RemoteMemory is where an RDMA operation reads or writes at the peer.
type RemoteMemory struct {
	Address uint64
	RKey    uint32
	// Length is how many bytes the peer has there; -1 when that is not known.
	Length int
}

// FieldLayout is a row of unsigned integers.
type FieldLayout []Field

// Field is one integer of a layout.
type Field struct {
	Name  string
	Bytes int // 1, 2, 4 or 8
	Order binary.ByteOrder
}

// Append adds the integer to bytes.
func (f Field) Append(bytes []byte, value uint64) []byte {
	var wide [8]byte
	f.Order.PutUint64(wide[:], value)
	if f.lastFirst() {
		return append(bytes, wide[:f.Bytes]...)
	}
	return append(bytes, wide[8-f.Bytes:]...)
}

// read is the integer of the first bytes.
func (f Field) read(bytes []byte) uint64 {
	var wide [8]byte
	if f.lastFirst() {
		copy(wide[:], bytes[:f.Bytes])
	} else {
		copy(wide[8-f.Bytes:], bytes[:f.Bytes])
	}
	return f.Order.Uint64(wide[:])
}

// lastFirst reports whether the lowest byte is first.
func (f Field) lastFirst() bool { return f.Order.Uint16([]byte{1, 0}) == 1 }

// Size is the number of bytes the layout covers.
func (l FieldLayout) Size() int {
	size := 0
	for _, field := range l {
		size += field.Bytes
	}
	return size
}

// NamesRoles reports whether values of a type can name roles that the verb works on, or what is of a role.
func NamesRoles(t Type) bool {
	return t == Role || t == Roles || t == Instances || t == Buffer || t == Content || t == FaultName || t == Word
}

// RolesNamed are the roles that a value of such a type names.
func RolesNamed(t Type, value any) []string {
	switch v := value.(type) {
	case string:
		if t == Role {
			return []string{v}
		}
	case []string:
		if t == Roles || t == Instances {
			return v
		}
	case BufferName:
		if v.Role != "" {
			return []string{v.Role}
		}
	case testbed.Gathering:
		return v.Roles
	}
	return nil
}
