package hostfuncs

import (
	"fmt"

	"github.com/tetratelabs/wazero/api"
)

// ModuleName is the import module of the ABI.  An incompatible ABI would have another name.
const ModuleName = "rdma"

// Version is that of the ABI: functions and structs of an older minor version stay as they are.
type Version struct{ Major, Minor uint16 }

// Current is the version this host implements.
var Current = v1_6

var (
	v1   = Version{1, 0}
	v1_1 = Version{1, 1} // the rest of the connection manager
	v1_2 = Version{1, 2} // the rest of the data path
	v1_3 = Version{1, 3} // the rest of what the verbs do to queues, groups and devices
	v1_4 = Version{1, 4} // the extended verbs: builders, time stamps, changing regions; asynchronous events and ports
	v1_5 = Version{1, 5} // what event loops and runtimes of languages need
	v1_6 = Version{1, 6} // QPs without an endpoint, and completion channels of several CQs
)

// Number is the version as abi_version returns it.
func (v Version) Number() int32 { return int32(v.Major)<<16 | int32(v.Minor) }

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Function is one row of the ABI: a host function.
type Function struct {
	Name       string
	Since      Version
	Capability Capability
	Blocking   bool   // may wait; the guest's other goroutines or threads wait with it
	Keeps      bool   // the provider uses memory given to it after the call
	Doc        string // what it does, in sentences
	Params     []Param
	Result     string // what a result >= 0 is; "" when it is always 0
	Errors     string // which errno means what here, beyond the general ones
	binding
}

// Param is one parameter of a host function.
type Param struct {
	Name string
	Type ParamType
	Of   string // numbers: the enum, if any; handles: the kind; pointers: the struct, "u64", "bytes" or "text"
	Doc  string
}

// ParamType is the meaning of the 32 or 64 bits of a parameter.
type ParamType int

// The types of parameter.
const (
	U32      ParamType = iota // a number or a set of flags
	I64                       // a signed number
	HandleOf                  // a handle of kind Of
	In                        // pointer to Of, which the host reads
	Out                       // pointer to Of, which the host writes
	InOut                     // pointer to Of, which the host reads (its struct_size) and writes
)

// Struct is one struct of the ABI, as it lies in guest memory.
type Struct struct {
	Name   string
	GoName string
	Doc    string
	Size   uint32
	Fields []Field
}

// Field is one field of a Struct.
type Field struct {
	Name   string
	GoName string
	Type   string // u8 u16 u32 u64 i32, or the name of a Struct
	Enum   string // the enum of a number's values; "" for any
	Handle bool   // a u32 that is a handle
	Count  uint32 // of an array; 0 for a single value
	Offset uint32
	Size   uint32 // of the whole field
	Doc    string
}

// Enum is one set of constants of the ABI.
type Enum struct {
	Name   string // of the type, "wc_status"
	Prefix string // of its constants, "WC"
	GoName string // of the type in Go, "WCStatus"
	GoTo   string // prefix of its constants in Go
	Doc    string
	Flags  bool // values are bits to combine
	Values []EnumValue
}

// EnumValue is one constant: its name without the prefix, and its number.
type EnumValue struct {
	Name  string
	Value uint32
}

func (t ParamType) String() string {
	return [...]string{"u32", "i64", "handle", "in", "out", "inout"}[t]
}

// Signature is the function's parameters as wasm has them; the result is always one i32.
func (f *Function) Signature() []api.ValueType { return f.signature }
