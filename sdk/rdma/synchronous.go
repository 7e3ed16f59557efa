package rdma

import (
	"time"
	"unsafe"
)

// Synchronous endpoints have no event channel: what a call of theirs starts, Complete waits for.
//
//	listener.Listen(8)
//	server, err := listener.GetRequest(rdma.Forever)
//	err = server.Accept(nil)
//	err = server.Complete(rdma.Forever)

// CreateEP makes a synchronous endpoint.  pd and attr are nil for one without a QP.
func CreateEP(info AddrInfo, pd *PD, attr *QPInitAttr) (*EP, error) {
	return (&EventChannel{}).CreateEP(info, pd, attr)
}

// CreateID makes an endpoint without address or QP; synchronous when c is nil.
func (c *EventChannel) CreateID(space PortSpace) (*EP, error) {
	if c == nil {
		c = &EventChannel{}
	}
	h, err := handle("create_id", abiCreateID(c.Handle, space))
	if err != nil {
		return nil, err
	}
	return newEP(c, h)
}

// DestroyID destroys an endpoint that has no QP.
func (ep *EP) DestroyID() error { return check("destroy_id", abiDestroyID(ep.Handle)) }

// Complete waits for the end of what the last call of a synchronous endpoint started.  ECONNREFUSED when the
// peer rejected; Event says why.
func (ep *EP) Complete(timeout time.Duration) error {
	return check("complete", abiComplete(ep.Handle, int64(timeout)))
}

// Await is what a synchronous call of librdmacm does: started is what the call gave, its end Complete's.  A
// call may come to its end at once and give the result itself.
func (ep *EP) Await(started error, timeout time.Duration) error {
	if started != nil {
		return started
	}
	return ep.Complete(timeout)
}

// GetRequest waits for a connection request of a synchronous listener.
func (ep *EP) GetRequest(timeout time.Duration) (*EP, error) {
	h, err := handle("get_request", abiGetRequest(ep.Handle, int64(timeout)))
	if err != nil {
		return nil, err
	}
	return newEP(&EventChannel{}, h)
}

// Event is the event that ended the last call of a synchronous endpoint, or the request that made it.
func (ep *EP) Event() (*Event, error) {
	event := &Event{EP: ep}
	event.StructSize = uint32(unsafe.Sizeof(event.CMEvent))
	if err := check("ep_event", abiEPEvent(ep.Handle, &event.CMEvent)); err != nil {
		return nil, err
	}
	return event, nil
}

// Migrate moves the endpoint and its unread events to a channel; nil makes it synchronous.
func (ep *EP) Migrate(to *EventChannel) error {
	if to == nil {
		to = &EventChannel{}
	}
	if err := check("migrate_id", abiMigrateID(ep.Handle, to.Handle)); err != nil {
		return err
	}
	ep.Channel = to
	return nil
}

// HoldEvents says whether the channel's events are to be acknowledged with Event.Ack.
func (c *EventChannel) HoldEvents(hold bool) error {
	on := uint32(0)
	if hold {
		on = 1
	}
	return check("hold_events", abiHoldEvents(c.Handle, on))
}

// Ack acknowledges an event of a channel that holds its events.
func (e *Event) Ack() error { return check("ack_event", abiAckEvent(e.Held)) }
