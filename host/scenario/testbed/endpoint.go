package testbed

import (
	"fmt"
	"net/netip"
	"slices"
	"syscall"

	"rdmarun/rdmacore"
)

// Endpoint is a connection manager id with its queue pair, or a listener.
type Endpoint struct {
	Name string
	Role *Role
	id   *rdmacore.ID
	// Listener is the endpoint that got this one's CONNECT_REQUEST; nil for those of create_ep.
	Listener *Endpoint
	// Passive endpoints were made to listen.
	Passive bool
	// Answered is set by accept and reject.
	Answered bool
	// Disconnected is set by disconnect.
	Disconnected bool
	// Received is the last completion of a receive that was polled.
	Received rdmacore.WC
	// Unsignaled counts the work requests posted without a completion to come.
	Unsignaled int
	// Datagrams is how to reach the datagram peer or the group that the last event named; nil before.
	Datagrams *rdmacore.UDParam
	// IgnoreLeftovers is set by `leftovers: ignore`.
	IgnoreLeftovers bool

	handle    *rdmacore.AH // of Datagrams
	release   *free
	destroyed bool
}

// Adopt gives an id to the testbed, which destroys it at the end of the case.
func (r *Role) Adopt(name string, id *rdmacore.ID) *Endpoint {
	endpoint := &Endpoint{Name: name, Role: r, id: id}
	endpoint.release = r.deferFree("endpoint "+name, id.DestroyEP)
	r.living = append(r.living, endpoint)
	r.testbed.owners.add(id, r)
	return endpoint
}

// Bind gives an endpoint its name within its role.  An older endpoint of that name lives on without one.
func (e *Endpoint) Bind(name string) {
	e.Name = name
	e.release.what = e.Role.Name + "'s endpoint " + name
	e.Role.endpoints[name] = e
}

// FreeFirst makes the endpoint the next to be freed, before everything made so far: its queue pair uses some of that.
func (e *Endpoint) FreeFirst() { e.Role.testbed.freeFirst(e.release) }

// ID is the connection manager id.
func (e *Endpoint) ID() *rdmacore.ID { return e.id }

// CQ is the completion queue of one direction, "send" or "recv".
func (e *Endpoint) CQ(direction string) (*rdmacore.CQ, error) {
	cq := e.id.SendCQ()
	if direction == "recv" {
		cq = e.id.RecvCQ()
	}
	if cq != nil {
		return cq, nil
	}
	return nil, e.noQueuePair(fmt.Sprintf(", and so no %s completion queue", direction))
}

// QP is the queue pair.
func (e *Endpoint) QP() (*rdmacore.QP, error) {
	if qp := e.id.QP(); qp != nil {
		return qp, nil
	}
	return nil, e.noQueuePair("")
}

func (e *Endpoint) noQueuePair(and string) *Failure {
	return &Failure{
		What:  fmt.Sprintf("endpoint %q has no queue pair%s", e.Name, and),
		Hint:  "a listener has none; its connections do",
		Errno: syscall.EBADF,
	}
}

// Destroy frees the endpoint before the end of the case.  It records completions that were not polled, and events
// that were not read, for the leftover check.
func (e *Endpoint) Destroy() error {
	e.recordLost(func(event rdmacore.AsyncEvent) bool { return event.ID == e.id })
	e.remove()
	return e.release.freeNow()
}

// recordLost records what is about to be destroyed unseen: the endpoint's completions, and some events.
func (e *Endpoint) recordLost(events func(rdmacore.AsyncEvent) bool) {
	t := e.Role.testbed
	t.lost = append(t.lost, e.leftovers()...)
	t.recordLostEvents(events)
}

// remove takes the endpoint off the lists of its role.
func (e *Endpoint) remove() {
	e.destroyed = true
	e.Role.living = slices.DeleteFunc(e.Role.living, func(other *Endpoint) bool { return other == e })
	e.Role.testbed.owners.remove(e.id)
}

// DestroyID destroys the id alone, as rdma_destroy_id(3) does: not while it has a queue pair.
func (e *Endpoint) DestroyID() error {
	if err := e.id.Destroy(); err != nil {
		return err
	}
	e.release.done = true
	e.remove()
	return nil
}

// DestroyQP destroys the queue pair.  It records completions and events that were not read.
func (e *Endpoint) DestroyQP() error {
	e.recordLost(func(event rdmacore.AsyncEvent) bool { return event.ID == e.id && event.SRQ == nil })
	return e.id.DestroyQP()
}

// Ends are where a connection begins and ends, as an endpoint of it has them.
type Ends struct {
	Local netip.AddrPort `json:"local"`
	Peer  netip.AddrPort `json:"peer"`
}

// Ignore makes the leftover check pass over the endpoint and its peer, which may be elsewhere (IgnorePeer).
func (e *Endpoint) Ignore() Ends {
	e.IgnoreLeftovers = true
	ends := Ends{e.id.LocalAddr(), e.id.PeerAddr()}
	e.Role.testbed.IgnorePeer(ends)
	return ends
}

// IgnorePeer makes the leftover check pass over the endpoint at the other end of a connection, if it is here.
func (t *Testbed) IgnorePeer(of Ends) {
	if !of.Peer.IsValid() {
		return
	}
	for _, role := range t.roles {
		for _, other := range role.living {
			if other.id.LocalAddr() == of.Peer && other.id.PeerAddr() == of.Local {
				other.IgnoreLeftovers = true
			}
		}
	}
}

// Reach sets where datagrams of the endpoint go from now on, from the parameters of an event.
func (e *Endpoint) Reach(peer *rdmacore.UDParam) {
	e.Datagrams, e.handle = peer, nil // the old handle lives to the end of the case: requests may be under way
}

// AddressHandle is the handle, in that protection domain, for where the datagrams go.
func (e *Endpoint) AddressHandle(pd *rdmacore.PD) (*rdmacore.AH, error) {
	if e.handle != nil {
		return e.handle, nil
	}
	handle, err := e.Role.NewHandle(func() (*rdmacore.AH, error) { return pd.CreateAH(e.Datagrams.AH) })
	if err != nil {
		return nil, err
	}
	e.handle = handle.Native()
	return e.handle, nil
}
