package rdma

import (
	"net/netip"
	"time"
	"unsafe"
)

// EventChannel is where endpoints report.
type EventChannel struct{ Handle Handle }

// CreateEventChannel makes an event channel.
func CreateEventChannel() (*EventChannel, error) {
	h, err := handle("create_event_channel", abiCreateEventChannel())
	if err != nil {
		return nil, err
	}
	return &EventChannel{h}, nil
}

// Destroy closes the channel; EBUSY while it has endpoints.
func (c *EventChannel) Destroy() error {
	return check("destroy_event_channel", abiDestroyEventChannel(c.Handle))
}

// CreateEP makes an endpoint.  pd and attr are nil for one without a QP.
func (c *EventChannel) CreateEP(info AddrInfo, pd *PD, attr *QPInitAttr) (*EP, error) {
	info.StructSize = uint32(unsafe.Sizeof(info))
	h, err := handle("create_ep", abiCreateEP(c.Handle, &info, pd.handle(), attr.sized()))
	if err != nil {
		return nil, err
	}
	return newEP(c, h)
}

// Bind makes a passive endpoint on a local address; with attr, each request comes with a QP made of it.
func (c *EventChannel) Bind(local netip.AddrPort, pd *PD, attr *QPInitAttr) (*EP, error) {
	return c.CreateEP(AddrInfo{Flags: AddrInfoPassive, Source: AddressFrom(local)}, pd, attr)
}

// Dial makes an active endpoint, resolved and ready to connect.  It waits.
func (c *EventChannel) Dial(peer netip.AddrPort, pd *PD, attr *QPInitAttr) (*EP, error) {
	return c.CreateEP(AddrInfo{Destination: AddressFrom(peer)}, pd, attr)
}

// Event is one event of an endpoint.
type Event struct {
	CMEvent
	EP *EP // CONNECT_REQUEST: the new endpoint; else the one waited for, or nil if that was any
}

// PrivateData is what the peer sent, as long as its message allows and padded with zeros.
func (e *Event) PrivateData() []byte { return e.Param.PrivateData[:e.Param.PrivateDataLen] }

// WaitEvent waits for an event of one endpoint (a listener's are its CONNECT_REQUESTs), or of any with nil.
func (c *EventChannel) WaitEvent(ep *EP, timeout time.Duration) (*Event, error) {
	event := &Event{EP: ep}
	event.StructSize = uint32(unsafe.Sizeof(event.CMEvent))
	of := Handle(0)
	if ep != nil {
		of = ep.Handle
	}
	result := abiWaitEvent(c.Handle, of, &event.CMEvent, int64(timeout))
	if err := check("wait_event", result); err != nil {
		return nil, err
	}
	if event.CMEvent.Type != EventConnectRequest {
		return event, nil
	}
	child, err := newEP(c, event.CMEvent.EP)
	event.EP = child
	return event, err
}
