package rdmacore

// #include "core/core.h"
import "C"

import (
	"math"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// PortSpace is the port space of an id (enum rdma_port_space).
type PortSpace int

// ID is a communication identifier, rdma_cm's socket.  Its calls never wait: what they start ends with an
// event on its channel; of a synchronous id, with Complete.
type ID struct {
	c         *C.struct_rdma_cm_id
	channel   *EventChannel
	portSpace PortSpace
	qp        *QP
	pd        *PD  // given to CreateQP; nil is the default
	srq       *SRQ // of CreateSRQ
	listening bool
	groups    map[netip.Addr]uint64 // joined, with the tags of their events
	backlog   int                   // of a listener: how many of its requests are kept unread
	listener  *ID                   // of a child

	// Synchronous ids, guarded by the mu of their own channel.
	synchronous bool
	pending     string // the call under way, "" when none is
	completed   *Event // that ended the last call, if librdmacm does not keep it

	// Guarded by Provider.held.
	unacknowledged [eventTypes]int
	holdsRequest   bool // the request that made this id counts as unacknowledged of listener

	// Of CreateEP: what the QPs of a listener's children are made of, and what goes before the private
	// data of the first Connect.
	childPD     *PD
	childQP     *QPInitAttr
	connectData []byte
}

// CreateID makes an id (rdma_create_id(3)).
func (c *EventChannel) CreateID(ps PortSpace) (*ID, error) {
	const op = "rdma_create_id"
	if !c.open() {
		return nil, closed(op, "event channel")
	}
	if c.private {
		return nil, fail(op, syscall.EINVAL, "the channel belongs to a synchronous id")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	id := &ID{channel: c, portSpace: ps}
	var native *C.struct_rdma_cm_id
	made := c.provider.ask(func() C.int { return C.core_create_id(c.provider.c, c.c, C.int(ps), &native) })
	if made.refusal != "" {
		return nil, &Error{Op: op, Errno: syscall.Errno(-made.result), Why: made.refusal}
	}
	if err := check(op, made.result); err != nil {
		return nil, err
	}
	id.c = native
	c.ids[native] = id
	return id, nil
}

func (id *ID) open() bool { return id != nil && id.c != nil }

// Destroyed reports whether the id is gone.
func (id *ID) Destroyed() bool { return !id.open() }

func (id *ID) native() *C.struct_core_provider { return id.channel.provider.c }

// bound reports whether the id has a device, by resolving, binding or being a child.
func (id *ID) bound() bool { return id.c.verbs != nil }

// Listening reports whether the id has become a listener.
func (id *ID) Listening() bool { return id.open() && id.listening }

// BindAddr gives the id a local address (rdma_bind_addr(3)); the zero AddrPort is any address and any port.
// EADDRINUSE, EADDRNOTAVAIL (no such local address), ENODEV (no RDMA device there).
func (id *ID) BindAddr(address netip.AddrPort) error {
	const op = "rdma_bind_addr"
	if !id.open() {
		return closed(op, "id")
	}
	if !address.Addr().IsValid() {
		address = netip.AddrPortFrom(netip.IPv4Unspecified(), address.Port())
	}
	c := toCAddress(address)
	return id.call(op, address.String(), func() C.int { return C.core_bind_addr(id.native(), id.c, &c) })
}

// ResolveAddr finds the device and path to dst (rdma_resolve_addr(3)).  src may be zero.  Ends with
// ADDR_RESOLVED or ADDR_ERROR.
func (id *ID) ResolveAddr(src, dst netip.AddrPort, timeout time.Duration) error {
	const op = "rdma_resolve_addr"
	if !id.open() {
		return closed(op, "id")
	}
	if !dst.Addr().IsValid() {
		return fail(op, syscall.EINVAL, "no destination address")
	}
	csrc, cdst := toCAddress(src), toCAddress(dst)
	return id.start(op, dst.String(), func() C.int {
		return C.core_resolve_addr(id.native(), id.c, &csrc, &cdst, milliseconds(timeout))
	})
}

// ResolveRoute finds the route to the resolved address (rdma_resolve_route(3)).  Ends with ROUTE_RESOLVED
// or ROUTE_ERROR.
func (id *ID) ResolveRoute(timeout time.Duration) error {
	const op = "rdma_resolve_route"
	if !id.open() {
		return closed(op, "id")
	}
	return id.start(op, "", func() C.int {
		return C.core_resolve_route(id.native(), id.c, milliseconds(timeout))
	})
}

// milliseconds rounds up: a timeout must not become 0.
func milliseconds(timeout time.Duration) C.int {
	count := (timeout + time.Millisecond - 1) / time.Millisecond
	return C.int(min(max(count, 0), math.MaxInt32))
}

// defaultBacklog is the kernel's default maximum (net.rdma_ucm.max_backlog).
const defaultBacklog = 1024

// Listen makes the id a listener (rdma_listen(3)).  backlog is how many requests may be unread; 0 is the
// system's most.
func (id *ID) Listen(backlog int) error {
	const op = "rdma_listen"
	if !id.open() {
		return closed(op, "id")
	}
	backlog = min(max(backlog, 0), math.MaxInt32)
	id.channel.mu.Lock() // a request may be read before this returns
	id.backlog = backlog
	if backlog == 0 {
		id.backlog = defaultBacklog
	}
	id.channel.mu.Unlock()
	err := id.call(op, id.LocalAddr().String(), func() C.int {
		return C.core_listen(id.native(), id.c, C.int(backlog))
	})
	id.listening = id.listening || err == nil
	return err
}

// QP is the id's queue pair, or nil.
func (id *ID) QP() *QP {
	if !id.open() {
		return nil
	}
	return id.qp
}

// SendCQ is the queue of the QP's send completions, or nil.
func (id *ID) SendCQ() *CQ {
	if qp := id.QP(); qp != nil {
		return qp.sendCQ
	}
	return nil
}

// RecvCQ is the queue of the QP's receive completions, or nil.
func (id *ID) RecvCQ() *CQ {
	if qp := id.QP(); qp != nil {
		return qp.recvCQ
	}
	return nil
}

// Channel is the event channel of the id.
func (id *ID) Channel() *EventChannel {
	if id == nil {
		return nil
	}
	return id.channel
}

// PortSpace is that given to CreateID; a child has its listener's.
func (id *ID) PortSpace() PortSpace {
	if id == nil {
		return 0
	}
	return id.portSpace
}

// Device is the device that the id is bound to, nil while it is unbound.
func (id *ID) Device() *Device {
	if !id.open() {
		return nil
	}
	return id.channel.provider.byHandle(id.c.verbs)
}

// PD is the protection domain that the id uses: the one given to CreateQP, else librdmacm's default for the device. Do
// not deallocate the default, and deregister its MRs before the last id on the device is destroyed. nil while the id
// is unbound.
func (id *ID) PD() *PD {
	switch {
	case !id.open():
		return nil
	case id.pd != nil:
		return id.pd
	case id.c.pd == nil:
		return nil
	}
	return &PD{c: id.c.pd, device: id.Device(), borrowed: true}
}

// LocalAddr is the local address, zero while there is none.
func (id *ID) LocalAddr() netip.AddrPort {
	if !id.open() {
		return netip.AddrPort{}
	}
	var c C.struct_core_address
	C.core_local_address(id.c, &c)
	return fromCAddress(&c)
}

// PeerAddr is the address of the peer, zero while there is none.
func (id *ID) PeerAddr() netip.AddrPort {
	if !id.open() {
		return netip.AddrPort{}
	}
	var c C.struct_core_address
	C.core_peer_address(id.c, &c)
	return fromCAddress(&c)
}

// SrcPort is the local port, 0 while there is none (rdma_get_src_port(3)).
func (id *ID) SrcPort() uint16 {
	if !id.open() {
		return 0
	}
	return uint16(C.core_src_port(id.native(), id.c))
}

// DstPort is the port of the peer, 0 while there is none (rdma_get_dst_port(3)).
func (id *ID) DstPort() uint16 {
	if !id.open() {
		return 0
	}
	return uint16(C.core_dst_port(id.native(), id.c))
}

// CreateSRQ makes a shared receive queue that belongs to the id (rdma_create_srq(3)); pd nil is the id's default.
// QPs that use it name it in QPInitAttr.SRQ, and PostRecv of the id posts to it.  EINVAL for an id
// without a device or with an SRQ already, or a PD of another device or provider.
func (id *ID) CreateSRQ(pd *PD, attr SRQAttr) error {
	const op = "rdma_create_srq"
	switch {
	case !id.open():
		return closed(op, "id")
	case pd != nil && pd.c == nil:
		return closed(op, "PD")
	case pd != nil && pd.device.provider != id.channel.provider:
		return foreign(op, "PD", pd.device.provider, id.channel.provider)
	case id.srq != nil:
		return fail(op, syscall.EINVAL, "the id has an SRQ already")
	}
	srq := &SRQ{pd: pd, id: id}
	var native *C.struct_ibv_pd
	if pd != nil {
		native = pd.c
	} else {
		srq.pd = id.PD()
	}
	var init C.struct_ibv_srq_init_attr
	init.attr.max_wr, init.attr.max_sge = C.uint32_t(attr.MaxWR), C.uint32_t(attr.MaxSGE)
	if err := id.call(op, "", func() C.int {
		return C.core_id_create_srq(id.native(), id.c, native, &init)
	}); err != nil {
		return id.Device().beyond(err, attr.demands)
	}
	srq.c = id.c.srq
	id.channel.provider.remember(unsafe.Pointer(srq.c), srq)
	id.srq = srq
	return nil
}

// SRQ is the id's own shared receive queue, or nil.
func (id *ID) SRQ() *SRQ {
	if !id.open() {
		return nil
	}
	return id.srq
}

// DestroySRQ frees the id's shared receive queue (rdma_destroy_srq(3)).  Unlike the C function it reports a failure:
// EBUSY while QPs use it.
func (id *ID) DestroySRQ() error {
	const op = "rdma_destroy_srq"
	if !id.open() {
		return closed(op, "id")
	}
	srq := id.srq
	if srq == nil {
		return closed(op, "SRQ")
	}
	err := id.channel.provider.destroy(func() error { return check(op, int(C.core_id_destroy_srq(id.native(), id.c))) },
		unsafe.Pointer(srq.c))
	if err != nil {
		return err
	}
	srq.c, id.srq = nil, nil
	return nil
}

// MigrateID moves the id with its unread events to another event channel of its provider (rdma_migrate_id(3)); nil
// makes it synchronous.
//
// EINVAL for a channel of another provider, or nil for an id that is synchronous already. EBUSY while a call of a
// synchronous id is under way, or if events of the id are not acknowledged within a second.
func (id *ID) MigrateID(channel *EventChannel) error {
	const op = "rdma_migrate_id"
	if !id.open() {
		return closed(op, "id")
	}
	if channel != nil {
		switch {
		case !channel.open():
			return closed(op, "event channel")
		case channel.provider != id.channel.provider:
			return foreign(op, "event channel", channel.provider, id.channel.provider)
		case channel.private && channel != id.channel:
			return fail(op, syscall.EINVAL, "the channel belongs to another, synchronous id")
		case channel == id.channel:
			return fail(op, syscall.EINVAL, "the id is on that channel already")
		}
	} else if id.synchronous {
		return fail(op, syscall.EINVAL, "the id is synchronous already")
	}
	if err := id.readyToGo(op); err != nil {
		return err
	}
	p := id.channel.provider
	p.migrating.Lock() // so that two locks of channels are never taken in two orders
	defer p.migrating.Unlock()
	return id.migrate(op, channel)
}

func (id *ID) migrate(op string, to *EventChannel) error {
	from := id.channel
	from.mu.Lock()
	defer from.mu.Unlock()
	if id.pending != "" {
		return fail(op, syscall.EBUSY, "%s of this id has not come to its end", id.pending)
	}
	var native *C.struct_rdma_event_channel
	if to != nil {
		to.mu.Lock()
		defer to.mu.Unlock()
		native = to.c
	}
	if err := id.call(op, "", func() C.int { return C.core_migrate_id(id.native(), id.c, native) }); err != nil {
		return err
	}
	if to == nil {
		to = from.provider.privateChannel(id)
	}
	delete(from.ids, id.c)
	to.ids[id.c] = id
	from.discard(func(d delivery) bool {
		if d.key == id && !to.hand(d) {
			to.keep(d)
		}
		return d.key == id
	})
	id.channel, id.synchronous, id.completed = to, to.private, nil
	id.noteRequest()
	if from.private {
		from.retire()
	}
	return nil
}
