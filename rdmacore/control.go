package rdmacore

// #include "core/core.h"
// #include "provider/control.h"
import "C"

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// ControlKind is a kind of message between rdmarun and the library in a program that is a role (provider/control.h).
type ControlKind uint32

// The kinds.
const (
	ControlReady       ControlKind = C.CORE_CONTROL_READY
	ControlFaultAdd    ControlKind = C.CORE_CONTROL_FAULT_ADD
	ControlFaultRemove ControlKind = C.CORE_CONTROL_FAULT_REMOVE
	ControlHoldEvents  ControlKind = C.CORE_CONTROL_HOLD_EVENTS
)

const (
	// ControlMessageMax is the size of the longest message.
	ControlMessageMax = C.sizeof_struct_core_control_hello
	// TallySize is the size of the memory in which the device of a process counts.
	TallySize = C.sizeof_struct_core_tally
)

// ControlRequest is a message to a process of a program.
type ControlRequest struct {
	Kind   ControlKind
	Number uint32 // of its answer
	Rule   uint32 // of ControlFaultRemove
	Fault  *Fault // of ControlFaultAdd
	Hold   bool   // of ControlHoldEvents
}

// ControlAnswer is an answer.
type ControlAnswer struct {
	Kind   ControlKind
	Number uint32 // of the request; 0: there was none
	Err    error  // why it failed
	Rule   uint32 // the rule of ControlFaultAdd
	Count  uint32 // what the rule was applied to, of ControlFaultRemove; events that were held
}

// EncodeControl is a request as the library reads it.
func EncodeControl(request ControlRequest) ([]byte, error) {
	c := C.struct_core_control_request{
		kind: C.uint32_t(request.Kind), number: C.uint32_t(request.Number), rule: C.uint32_t(request.Rule),
	}
	if request.Fault != nil {
		var err error
		if c.fault, err = request.Fault.toC("fault"); err != nil {
			return nil, err
		}
	}
	if request.Hold {
		c.hold = 1
	}
	return append([]byte{}, unsafe.Slice((*byte)(unsafe.Pointer(&c)), unsafe.Sizeof(c))...), nil
}

// DecodeControl reads an answer.
func DecodeControl(message []byte) (ControlAnswer, error) {
	var c C.struct_core_control_answer
	if len(message) != int(unsafe.Sizeof(c)) {
		return ControlAnswer{}, fmt.Errorf("an answer of %d bytes, want %d", len(message), unsafe.Sizeof(c))
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&c)), unsafe.Sizeof(c)), message)
	answer := ControlAnswer{
		Kind: ControlKind(c.kind), Number: uint32(c.number), Count: uint32(c.count),
	}
	if c.result < 0 {
		answer.Err = syscall.Errno(-c.result)
		return answer, nil
	}
	if answer.Kind == ControlFaultAdd {
		answer.Rule = uint32(c.result)
	}
	return answer, nil
}

// ControlWelcome is the first message to a process.  With it goes a file in memory of TallySize zeros.
func ControlWelcome() []byte {
	c := C.struct_core_control_welcome{version: C.CORE_CONTROL_VERSION, tally_size: C.sizeof_struct_core_tally}
	return append([]byte{}, unsafe.Slice((*byte)(unsafe.Pointer(&c)), unsafe.Sizeof(c))...)
}

// ControlCounter is a counter of a device by its name in the kernel (Provider.Counters), and its place in a Tally.
type ControlCounter struct {
	Name  string
	index int
}

// DecodeControlHello reads the first message of a process: the counters of its device.  An error says that its library
// is not of the version of this program.
func DecodeControlHello(message []byte) ([]ControlCounter, error) {
	var c C.struct_core_control_hello
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&c)), unsafe.Sizeof(c)), message)
	if len(message) != int(unsafe.Sizeof(c)) || c.version != C.CORE_CONTROL_VERSION ||
		c.fault_size != C.sizeof_struct_core_fault {
		return nil, fmt.Errorf("the library has version %d of the control channel (%d bytes), want %d (%d bytes): "+
			"build rdmarun and the library together", c.version, len(message), C.CORE_CONTROL_VERSION, unsafe.Sizeof(c))
	}
	if c.counters > C.CORE_COUNTERS_MAX {
		return nil, fmt.Errorf("a device with %d counters, want at most %d", c.counters, C.CORE_COUNTERS_MAX)
	}
	var counters []ControlCounter
	for _, each := range c.counter[:c.counters] {
		if each.index >= C.CORE_COUNTERS_MAX {
			return nil, fmt.Errorf("a counter at index %d, want at most %d", each.index, C.CORE_COUNTERS_MAX-1)
		}
		counters = append(counters, ControlCounter{cText(each.name[:]), int(each.index)})
	}
	return counters, nil
}

// Tally is the memory in which the device of a process counts (struct core_tally), which that process can write at any
// time.  It has TallySize bytes, at an address that is a multiple of 8.
type Tally []byte

// NewTally is one in memory of this process.
func NewTally() Tally {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(make([]uint64, TallySize/8)))), TallySize)
}

// Counter is the value of a counter.
func (t Tally) Counter(c ControlCounter) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&t[c.index*C.sizeof_uint64_t])))
}

// Applied is what the last rule of that number was applied to; 0 if there is no such number.
func (t Tally) Applied(rule uint32) uint32 {
	if rule >= C.CORE_FAULTS_MAX {
		return 0
	}
	const counters = C.CORE_COUNTERS_MAX * C.sizeof_uint64_t
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&t[counters+rule*C.sizeof_uint32_t])))
}
