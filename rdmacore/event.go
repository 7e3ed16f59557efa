package rdmacore

// #include "core/core.h"
import "C"

import (
	"context"
	"fmt"
	"golang.org/x/sys/unix"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// EventType is what happened to an id (enum rdma_cm_event_type).
type EventType int32

// Event is one connection manager event (rdma_get_cm_event(3)), acknowledged already unless its channel holds
// events.
type Event struct {
	ID       *ID // the id of the event; for CONNECT_REQUEST the new child
	Listener *ID // CONNECT_REQUEST: the listener; else nil
	Type     EventType
	Status   int // 0, a negative errno, or a positive reason of the peer (REJECTED, UNREACHABLE)

	// Conn is what the peer sent with CONNECT_REQUEST, CONNECT_RESPONSE and ESTABLISHED (active side);
	// its PrivateData is the event's.  On CONNECT_REQUEST responder resources and initiator depth
	// are swapped, to be this side's.
	Conn        ConnParam
	PrivateData []byte // as long as the message allows, padded with zeros (rdma_connect(3))

	// UD is how to reach a datagram peer (ESTABLISHED of a datagram id) or a group (MULTICAST_JOIN); nil
	// for connections.
	UD  *UDParam
	Arg uint64 // USER: what WriteEvent was given; MULTICAST_*: what the join was

	owner *ID // the id that counts the event in held
	held  *C.struct_rdma_cm_event
}

// OfGroup reports whether the event is of a multicast group.
func (e *Event) OfGroup() bool { return e.Type == EventMulticastJoin || e.Type == EventMulticastError }

// UDParam is the address of a datagram QP (struct rdma_ud_param).
type UDParam struct {
	AH    AHAttr
	QPNum uint32
	QKey  uint32
}

func newEvent(c *C.struct_core_event) *Event {
	e := &Event{Type: EventType(c._type), Status: int(c.status), Conn: fromCConnParam(&c.conn), Arg: uint64(c.arg)}
	e.PrivateData = e.Conn.PrivateData
	if c.datagram != 0 {
		e.UD = &UDParam{AH: fromCAHAttr(&c.ah_attr), QPNum: uint32(c.conn.qp_num), QKey: uint32(c.qkey)}
	}
	return e
}

// eventError is an event that reports a failure.
type eventError struct {
	Type   EventType
	Status int
	text   string
}

func (e *eventError) Error() string { return e.text }

// Unwrap is the errno that the synchronous functions of librdmacm would give: ECONNREFUSED for an answer of
// the peer, else the negative of the status.  ADDRINFO_ERROR has the resolver's code, which is no errno: EINVAL, as
// GetAddrInfo gives.
func (e *eventError) Unwrap() error {
	switch {
	case e.Status > 0 || e.Type == EventRejected:
		return syscall.ECONNREFUSED
	case e.Type == EventAddrInfoError:
		return syscall.EINVAL
	}
	return syscall.Errno(-e.Status)
}

// Err is nil when Status is 0, else an *eventError that explains the status.
func (e *Event) Err() error {
	if e.Status == 0 {
		return nil
	}
	portSpace := PortSpaceTCP
	if e.ID != nil {
		portSpace = e.ID.portSpace
	}
	return &eventError{Type: e.Type, Status: e.Status,
		text: fmt.Sprintf("%s with status %s", e.Type, StatusString(e.Type, e.Status, portSpace))}
}

// RejectReason formats the status of a REJECTED event, for example "8 (INVALID_SERVICE_ID)".
func RejectReason(status int) string {
	if status < 0 {
		return errnoString(status)
	}
	return numbered(status, rejectNames)
}

// StatusString formats the status of an event: a reject reason, a SIDR status (UNREACHABLE in a datagram
// port space) or a negative errno.
func StatusString(eventType EventType, status int, portSpace PortSpace) string {
	switch {
	case status == 0:
		return "0"
	case status == -1 && (eventType == EventAddrError || eventType == EventRouteError ||
		eventType == EventConnectError || eventType == EventMulticastError):
		return "-1 (librdmacm could not complete the step itself)"
	case status < 0:
		return errnoString(status)
	case eventType == EventRejected:
		return RejectReason(status)
	case eventType == EventUnreachable && (portSpace == PortSpaceUDP || portSpace == PortSpaceIPOIB):
		return numbered(status, sidrNames)
	}
	return strconv.Itoa(status)
}

func numbered(status int, table names[int]) string {
	for _, row := range table.rows {
		if row.value == status {
			return fmt.Sprintf("%d (%s)", status, row.name)
		}
	}
	return strconv.Itoa(status)
}

func errnoString(status int) string {
	if name := unix.ErrnoName(syscall.Errno(-status)); name != "" {
		return fmt.Sprintf("%d (%s)", status, name)
	}
	return strconv.Itoa(status)
}

// heldEvents guards, for all ids of a provider, the account of events that are not acknowledged.
type heldEvents struct{ sync.Mutex }

// HoldEvents chooses how events read from now on are acknowledged: at once (the default), or with hold by Event.Ack
// (rdma_ack_cm_event(3)).  An event that is not acknowledged keeps its id, for a
// CONNECT_REQUEST the listener, from being destroyed or migrated.
func (c *EventChannel) HoldEvents(hold bool) error {
	if !c.open() {
		return closed("rdma_get_cm_event", "event channel")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding = hold
	return nil
}

// Ack acknowledges an event (rdma_ack_cm_event(3)).  EINVAL for one that is acknowledged already: by Ack
// before, or when it was read because its channel does not hold events.
func (e *Event) Ack() error {
	const op = "rdma_ack_cm_event"
	if e == nil || e.owner == nil {
		return fail(op, syscall.EINVAL, "the event is acknowledged already")
	}
	held := &e.owner.channel.provider.held
	held.Lock()
	defer held.Unlock()
	native := e.held
	if native == nil {
		return fail(op, syscall.EINVAL, "the event is acknowledged already")
	}
	e.held = nil
	e.owner.unacknowledged[e.Type]--
	return check(op, int(C.core_ack_event(e.owner.native(), native)))
}

// Held reports whether the event is still to be acknowledged.
func (e *Event) Held() bool {
	if e == nil || e.owner == nil {
		return false
	}
	held := &e.owner.channel.provider.held
	held.Lock()
	defer held.Unlock()
	return e.held != nil
}

// hold puts an event on the account of its owner.
func (e *Event) hold(owner *ID, native *C.struct_rdma_cm_event) {
	if native == nil {
		return
	}
	held := &owner.channel.provider.held
	held.Lock()
	defer held.Unlock()
	e.owner, e.held = owner, native
	owner.unacknowledged[e.Type]++
}

// blocker names the events that are not acknowledged, "" when all are.
func (id *ID) blocker() string {
	held := &id.channel.provider.held
	held.Lock()
	defer held.Unlock()
	text := ""
	for _, row := range eventTypeNames.rows {
		if count := id.unacknowledged[row.value]; count > 0 {
			if text != "" {
				text += ", "
			}
			text += fmt.Sprintf("%d unacked %s", count, row.name)
		}
	}
	if text == "" {
		return ""
	}
	return text + " on " + id.name()
}

// name is how an id is called in errors.
func (id *ID) name() string {
	local := id.LocalAddr()
	if id.listening {
		return fmt.Sprintf("listener %d", local.Port())
	}
	if peer := id.PeerAddr(); peer.IsValid() {
		return fmt.Sprintf("the id of %s to %s", local, peer)
	}
	if local.IsValid() {
		return "the id of " + local.String()
	}
	return "an unbound id"
}

// acknowledgeTimeout bounds the waits that librdmacm does not bound.
const acknowledgeTimeout = time.Second

// waitAcknowledged waits until all events of the id are acknowledged, which rdma_destroy_id(3) and
// rdma_migrate_id(3) do without an end: EBUSY after acknowledgeTimeout, with what is missing.
func (id *ID) waitAcknowledged(op string) error {
	if id.blocker() == "" {
		return nil
	}
	clock := id.channel.provider.clock
	ctx, cancel := clock.WithTimeout(context.Background(), acknowledgeTimeout)
	defer cancel()
	for {
		ended := clock.Sleep(ctx, time.Millisecond)
		blocker := id.blocker()
		switch {
		case blocker == "":
			return nil
		case ended != nil:
			return fail(op, syscall.EBUSY, "%s; librdmacm would wait until it is acknowledged", blocker)
		}
	}
}
