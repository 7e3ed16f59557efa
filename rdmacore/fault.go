package rdmacore

// #include "core/core.h"
import "C"

import (
	"math"
	"net/netip"
	"syscall"
	"time"
)

// Fault describes a fault between two addresses of the fabric.
type Fault struct {
	From, To  netip.Addr
	Directed  bool      // only what goes from From to To; else both ways
	Side      FaultSide // of messages between processes
	Data      bool      // requests and responses of queue pairs
	CM        bool      // connection management messages
	Message   CMMessage // of those, only this one; 0: all
	Packets   PacketOps // of data, only packets of these operations; 0: all
	PSN       *PSNRange // of data, only packets with these numbers; nil: all
	InMessage int       // of data, only packets of the message with this number in its queue pair, from 1; 0: all
	// a loss, or of connection management messages and packets more; or what happens to the device
	Action      FaultAction
	Delay       time.Duration // of FaultDelay and FaultDuplicate; the limit of FaultReorder
	Probability float64       // for each message; 0 is taken as 1, certain
	Skip        int           // let this many through first
	Count       int           // affects at most this many; 0 means no limit
}

// maxMessage is the number of a message, as IBTA has them: of 24 bits.
const maxMessage = 1<<24 - 1

// FaultSide selects the messages between processes that a fault applies to.
type FaultSide uint32

// The sides.  Between objects of one process all messages are sent.
const (
	FaultSent     FaultSide = C.CORE_FAULT_SENT     // by this process
	FaultReceived FaultSide = C.CORE_FAULT_RECEIVED // from other processes
)

// PSNRange is packet sequence numbers of 24 bits from First to Last, both included, round their end.
type PSNRange struct{ First, Last uint32 }

// FaultRule is a fault that is in force.
type FaultRule struct {
	provider *Provider
	rule     C.int
}

// ofDevice reports whether a fault is of a device, and not of messages.
func (a FaultAction) ofDevice() bool { return a == FaultRemoveDevice || a == FaultChangeAddress }

// CanFault reports whether Fault works on this provider: on soft, not on a real fabric.
func (p *Provider) CanFault() bool { return p != nil && p.c != nil && p.c.fault_add != nil }

// Fault begins to apply a fault.  EOPNOTSUPP on a real fabric, EINVAL for one that is not valid, EBUSY for
// one that has happened to the device already.
// A fault with a probability draws from the provider's seed.
func (p *Provider) Fault(fault Fault) (*FaultRule, error) {
	const op = "fault"
	if p == nil || p.c == nil {
		return nil, closed(op, "provider")
	}
	if !p.CanFault() {
		return nil, fail(op, syscall.EOPNOTSUPP, "a real device cannot drop messages on request; run on soft")
	}
	c, err := fault.toC(op)
	if err != nil {
		return nil, err
	}
	rule := C.core_fault_add(p.c, &c)
	if err := check(op, int(rule)); err != nil {
		return nil, err
	}
	if fault.Action == FaultRemoveDevice {
		p.forgetDevices()
	}
	return &FaultRule{provider: p, rule: rule}, nil
}

// toC checks a fault and returns it as C has it.
func (fault Fault) toC(op string) (c C.struct_core_fault, err error) {
	if fault.Action.ofDevice() && fault != (Fault{Action: fault.Action}) {
		return c, fail(op, syscall.EINVAL, "what happens to the device has no addresses, messages or numbers")
	}
	c = C.struct_core_fault{
		from: toCAddress(netip.AddrPortFrom(fault.From, 0)), to: toCAddress(netip.AddrPortFrom(fault.To, 0)),
		attribute: C.uint32_t(fault.Message), probability: 1e6,
		side: C.uint32_t(fault.Side), action: C.uint32_t(fault.Action), delay: C.uint64_t(fault.Delay),
		skip: C.uint32_t(fault.Skip), count: C.uint32_t(fault.Count),
	}
	if fault.Probability < 0 || fault.Probability > 1 || fault.Skip < 0 || fault.Count < 0 || fault.Delay < 0 {
		return c, fail(op, syscall.EINVAL, "a probability is 0 to 1, a number or a delay not negative")
	}
	if fault.Probability != 0 {
		c.probability = C.uint32_t(math.Round(fault.Probability * 1e6))
	}
	if fault.InMessage < 0 || fault.InMessage > maxMessage {
		return c, fail(op, syscall.EINVAL, "messages are numbered from 1 to 0xffffff")
	}
	c.operations, c.message = C.uint32_t(fault.Packets), C.uint32_t(fault.InMessage)
	if fault.PSN != nil {
		c.has_psn, c.psn_first, c.psn_last = 1, C.uint32_t(fault.PSN.First), C.uint32_t(fault.PSN.Last)
	}
	if fault.Data {
		c.traffic |= C.CORE_FAULT_DATA
	}
	if fault.CM {
		c.traffic |= C.CORE_FAULT_CM
	}
	if fault.Directed {
		c.directed = 1
	}
	return c, nil
}

// Heal ends the fault and returns how many messages it affected, or how many ids got its event.
func (r *FaultRule) Heal() (done int, err error) {
	var count C.uint32_t
	if err := check("heal", int(C.core_fault_remove(r.provider.c, r.rule, &count))); err != nil {
		return 0, err
	}
	return int(count), nil
}
