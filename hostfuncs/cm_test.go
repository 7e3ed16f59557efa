package hostfuncs

import (
	"syscall"
	"testing"
	"unsafe"

	"rdmarun/rdmacore"
)

// number is an i32 parameter.
func number[T ~int | ~int32 | ~uint32](value T) uint64 { return uint64(uint32(value)) }

// kept is the event that a synchronous endpoint keeps.
func kept(t testing.TB, i *Instance, ep uint64, want rdmacore.EventType) CMEvent {
	t.Helper()
	put(i, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
	must(t, i, "ep_event", ep, eventAt)
	event := take[CMEvent](i, eventAt)
	if rdmacore.EventType(event.Type) != want || uint64(event.EP) != ep {
		t.Fatalf("%#x keeps %s of %#x, not %s", ep, rdmacore.EventType(event.Type), event.EP, want)
	}
	return event
}

// syncPair is two connected endpoints without event channels.
func syncPair(t testing.TB, i *Instance) (listener, active, passive uint64) {
	t.Helper()
	pd := must(t, i, "alloc_pd", 0)
	put(i, attrAt, QPInitAttr{StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 8, MaxRecvWR: 8,
		MaxSendSGE: 2, MaxRecvSGE: 2})
	put(i, infoAt, AddrInfo{StructSize: uint32(unsafe.Sizeof(AddrInfo{})), Flags: raiPassive})
	listener = must(t, i, "create_ep", 0, infoAt, pd, attrAt)
	must(t, i, "listen", listener, 4)
	info := AddrInfo{StructSize: uint32(unsafe.Sizeof(AddrInfo{}))}
	must(t, i, "device_address", 0, infoAt+40)
	info.Destination = take[Address](i, infoAt+40)
	info.Destination.Port = uint16(must(t, i, "src_port", listener))
	put(i, infoAt, info)
	active = must(t, i, "create_ep", 0, infoAt, pd, attrAt)
	if port := must(t, i, "dst_port", active); port != uint64(info.Destination.Port) {
		t.Errorf("the peer's port is %d", port)
	}
	must(t, i, "connect", active, 0)
	passive = must(t, i, "get_request", listener, timeout)
	if event := kept(t, i, passive, rdmacore.EventConnectRequest); uint64(event.Listener) != listener {
		t.Errorf("the request names listener %#x", event.Listener)
	}
	expect(t, i, syscall.EBUSY, "destroy_ep", listener) // passive holds its request
	must(t, i, "accept", passive, 0)
	must(t, i, "complete", active, timeout)
	must(t, i, "complete", passive, timeout)
	kept(t, i, active, rdmacore.EventEstablished)
	return listener, active, passive
}

func TestSynchronousEndpoints(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	listener, active, passive := syncPair(t, i)
	expect(t, i, syscall.EINVAL, "get_request", active, 0)
	expect(t, i, syscall.ETIMEDOUT, "get_request", listener, 1_000_000)
	must(t, i, "disconnect", active)
	must(t, i, "disconnect", passive)
	must(t, i, "complete", active, timeout)
	must(t, i, "complete", passive, timeout)
	kept(t, i, active, rdmacore.EventDisconnected)
}

func TestRejectedSynchronousEndpoint(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	listener, _, _ := syncPair(t, i)
	client := must(t, i, "create_ep", 0, infoAt, 0, 0)
	spare := must(t, i, "create_ep", 0, infoAt, must(t, i, "alloc_pd", 0), attrAt)
	put(i, wrAt, ConnParam{StructSize: uint32(unsafe.Sizeof(ConnParam{})), QPNum: numberOf(t, i, spare)})
	must(t, i, "connect", client, wrAt)
	server := must(t, i, "get_request", listener, timeout)
	copy(i.memory[bufferAt:], "options")
	must(t, i, "reject_ece", server, bufferAt, 7)
	expect(t, i, syscall.ECONNREFUSED, "complete", client, timeout)
	if event := kept(t, i, client, rdmacore.EventRejected); event.Status != 35 ||
		string(event.Param.PrivateData[:7]) != "options" {
		t.Errorf("status %d", event.Status)
	}
	must(t, i, "destroy_ep", server)
}

// numberOf is the number of an endpoint's QP.
func numberOf(t testing.TB, i *Instance, ep uint64) uint32 {
	t.Helper()
	put(i, eventAt, QPAttr{StructSize: uint32(unsafe.Sizeof(QPAttr{}))})
	must(t, i, "query_qp", must(t, i, "ep_qp", ep), eventAt)
	return take[QPAttr](i, eventAt).QPNum
}

// A connection request in the name of a QP ends its connection, so a guest can name its own QPs only. With one of
// those, the second connection is rejected as stale (reason 10) and the first one ends, as in the kernel.
func TestForeignQPNumber(t *testing.T) {
	i := newInstance(t, 1<<16, Config{Serial: 1})
	listener, active, passive := syncPair(t, i)
	info := take[AddrInfo](i, infoAt)

	stranger := instanceOn(t, 1<<16, Config{Provider: i.provider, Serial: 2})
	put(stranger, infoAt, info)
	for _, number := range []uint32{numberOf(t, i, active), numberOf(t, i, passive), 0, 99} {
		ep := must(t, stranger, "create_ep", 0, infoAt, 0, 0)
		put(stranger, wrAt, ConnParam{StructSize: uint32(unsafe.Sizeof(ConnParam{})), QPNum: number})
		expect(t, stranger, syscall.EINVAL, "connect", ep, wrAt)
		expect(t, stranger, syscall.EINVAL, "connect", ep, 0)
	}
	expect(t, i, syscall.ETIMEDOUT, "get_request", listener, 0)

	again := must(t, i, "create_ep", 0, infoAt, 0, 0)
	put(i, wrAt, ConnParam{StructSize: uint32(unsafe.Sizeof(ConnParam{})), QPNum: numberOf(t, i, active)})
	expect(t, i, syscall.ECONNREFUSED, "connect", again, wrAt)
	if event := kept(t, i, again, rdmacore.EventRejected); event.Status != 10 {
		t.Errorf("status %d", event.Status)
	}
	must(t, i, "disconnect", active)
	must(t, i, "complete", active, timeout)
	kept(t, i, active, rdmacore.EventDisconnected)
}

// An endpoint goes from a channel to synchronous and back, with its unread events.
func TestMigratedEndpoint(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "disconnect", p.passive)
	must(t, i, "disconnect", p.active)
	put(i, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
	p.event(t, p.active, rdmacore.EventDisconnected)
	expect(t, i, syscall.ETIMEDOUT, "wait_event", p.channel, p.listener, eventAt, 0) // reads passive's event
	must(t, i, "migrate_id", p.passive, 0)
	expect(t, i, syscall.EINVAL, "migrate_id", p.passive, 0)
	must(t, i, "wait_event", 0, p.passive, eventAt, timeout)
	if event := take[CMEvent](i, eventAt); rdmacore.EventType(event.Type) != rdmacore.EventDisconnected {
		t.Errorf("%s came along", rdmacore.EventType(event.Type))
	}
	must(t, i, "migrate_id", p.passive, p.channel)
	expect(t, i, syscall.EBADF, "wait_event", 0, 0, eventAt, 0)
}

func TestHeldEventOfAGuest(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "hold_events", p.channel, 1)
	must(t, i, "disconnect", p.passive)
	must(t, i, "disconnect", p.active)
	event := p.event(t, p.active, rdmacore.EventDisconnected)
	expect(t, i, syscall.EBUSY, "destroy_ep", p.active)
	must(t, i, "ep_qp", p.active) // nothing is destroyed by halves
	must(t, i, "ack_event", number(event.Held))
	expect(t, i, syscall.EBADF, "ack_event", number(event.Held))
	must(t, i, "destroy_ep", p.active)
	p.event(t, p.passive, rdmacore.EventDisconnected) // left to Close
}

// The steps that create_ep takes, one by one, and what they bring.
func TestStepsOfAnEndpoint(t *testing.T) {
	p := connectPair(t)
	i := p.Instance
	must(t, i, "device_address", 0, addressAt)
	address := take[Address](i, addressAt)
	address.Port = 7471
	put(i, addressAt, address)

	id := must(t, i, "create_id", p.channel, 0)
	copy(i.memory[bufferAt:], []byte{0x20})
	must(t, i, "set_option", id, number(rdmacore.OptionID), number(rdmacore.OptionTOS), bufferAt, 1)
	expect(t, i, syscall.EINVAL, "set_option", id, number(rdmacore.OptionID), number(rdmacore.OptionTOS), bufferAt, 4)
	expect(t, i, syscall.ENOSYS, "set_option", id, 9, 9, bufferAt, 1)
	expect(t, i, syscall.EINVAL, "resolve_route", id, 2000)
	must(t, i, "resolve_addr", id, 0, addressAt, 2000)
	p.event(t, id, rdmacore.EventAddrResolved)
	must(t, i, "resolve_route", id, 2000)
	p.event(t, id, rdmacore.EventRouteResolved)
	put(i, extraAt, QPExtra{StructSize: uint32(unsafe.Sizeof(QPExtra{}))})
	must(t, i, "create_qp_ex", id, p.pd, attrAt, extraAt)
	expect(t, i, syscall.EBUSY, "destroy_id", id)
	must(t, i, "destroy_qp", id)
	must(t, i, "destroy_id", id)

	bound := must(t, i, "create_id", p.channel, number(rdmacore.PortSpaceTCP))
	must(t, i, "bind_addr", bound, addressAt)
	if port := must(t, i, "src_port", bound); port != 7471 {
		t.Errorf("bound to port %d", port)
	}
	put(i, eventAt, QPAttr{StructSize: uint32(unsafe.Sizeof(QPAttr{}))})
	must(t, i, "init_qp_attr", p.active, number(rdmacore.QPStateRTR), eventAt)
	if attr := take[QPAttr](i, eventAt); attr.DestQPNum == 0 {
		t.Errorf("%+v", attr)
	}
	expect(t, i, syscall.EISCONN, "notify", p.passive, number(rdmacore.AsyncCommEst))
	put(i, eceAt, ECE{StructSize: uint32(unsafe.Sizeof(ECE{})), VendorID: 1})
	must(t, i, "set_local_ece", bound, eceAt)
	expect(t, i, syscall.EINVAL, "set_local_ece", p.active, eceAt)
	expect(t, i, syscall.EINVAL, "get_remote_ece", p.active, eceAt)
	expect(t, i, syscall.EINVAL, "join_multicast", bound, addressAt, 0)
	expect(t, i, syscall.EINVAL, "join_multicast_ex", bound, addressAt, 9, 0)
}

func TestGetAddrInfoOfAGuest(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	query := AddrQuery{StructSize: uint32(unsafe.Sizeof(AddrQuery{})), Flags: 2}
	copy(query.Node[:], "127.0.0.1")
	copy(query.Service[:], "7471")
	put(i, queryAt, query)
	put(i, resultAt, AddrResult{StructSize: uint32(unsafe.Sizeof(AddrResult{}))})
	must(t, i, "getaddrinfo", queryAt, resultAt, timeout)
	if found := take[AddrResult](i, resultAt); found.Destination.Port != 7471 ||
		found.QPType != uint32(rdmacore.QPTypeRC) {
		t.Errorf("%+v", found)
	}
	copy(query.Node[:], "no address")
	put(i, queryAt, query)
	expect(t, i, syscall.EINVAL, "getaddrinfo", queryAt, resultAt, timeout)
}

// Groups need a datagram QP, which a provider may lack.
func TestMulticastOfAGuest(t *testing.T) {
	i := newInstance(t, 1<<16, Config{})
	pd := must(t, i, "alloc_pd", 0)
	id := must(t, i, "create_id", 0, number(rdmacore.PortSpaceUDP))
	must(t, i, "device_address", 0, addressAt)
	must(t, i, "resolve_addr", id, 0, addressAt, 2000)
	must(t, i, "complete", id, timeout)
	put(i, attrAt, QPInitAttr{StructSize: uint32(unsafe.Sizeof(QPInitAttr{})), MaxSendWR: 8, MaxRecvWR: 8,
		MaxSendSGE: 1, MaxRecvSGE: 1})
	if result := call(t, i, "create_qp", id, pd, attrAt); result == -int32(syscall.EOPNOTSUPP) {
		t.Skip(i.lastError)
	} else if result < 0 {
		t.Fatal(i.lastError)
	}
	put(i, addressAt, Address{Family: familyIPv4, IP: [16]byte{239, 1, 2, 3}})
	must(t, i, "join_multicast", id, addressAt, 42)
	must(t, i, "complete", id, timeout)
	if event := kept(t, i, id, rdmacore.EventMulticastJoin); event.Arg != 42 || event.Param.QPNum != 0xffffff ||
		event.AH.DGID == [16]byte{} {
		t.Errorf("%+v", event)
	}
	must(t, i, "leave_multicast", id, addressAt)
	expect(t, i, syscall.EADDRNOTAVAIL, "leave_multicast", id, addressAt)

	// Unread events of a group go with the group, and the host's notes on it were never in it.
	channel := must(t, i, "create_event_channel")
	must(t, i, "migrate_id", id, channel)
	put(i, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
	other := must(t, i, "create_id", channel, number(rdmacore.PortSpaceUDP))
	used := i.budget.Used()
	for range 3 {
		must(t, i, "join_multicast", id, addressAt, 43)
		expect(t, i, syscall.ETIMEDOUT, "wait_event", channel, other, eventAt, 0) // and the host has read it
		must(t, i, "leave_multicast", id, addressAt)
		expect(t, i, syscall.ETIMEDOUT, "wait_event", channel, id, eventAt, 0)
	}
	if left := i.budget.Used(); left != used {
		t.Errorf("%+v is charged after the guest has left, and %+v before it joined", left, used)
	}
	must(t, i, "join_multicast", id, addressAt, 44)
	must(t, i, "wait_event", channel, id, eventAt, timeout)
	if event := take[CMEvent](i, eventAt); event.Arg != 44 {
		t.Errorf("arg is %d", event.Arg)
	}
}

func TestEventsOfAGuestsOwn(t *testing.T) {
	p := connectPair(t)
	minus := uint64(1<<64 - 3)
	if result := call(t, p.Instance, "write_event", p.active, minus, 77); result == -int32(syscall.ENOSYS) {
		t.Skip(p.lastError)
	}
	put(p.Instance, eventAt, CMEvent{StructSize: uint32(unsafe.Sizeof(CMEvent{}))})
	must(t, p.Instance, "wait_event", p.channel, p.active, eventAt, timeout)
	event := take[CMEvent](p.Instance, eventAt)
	if rdmacore.EventType(event.Type) != rdmacore.EventUser || event.Status != -3 || event.Arg != 77 {
		t.Errorf("%+v", event)
	}
	put(p.Instance, queryAt, AddrQuery{
		StructSize: uint32(unsafe.Sizeof(AddrQuery{})), Node: [256]uint8{'1', '.', '1', '.', '1', '.', '1'},
	})
	must(t, p.Instance, "resolve_addrinfo", p.active, queryAt)
	p.event(t, p.active, rdmacore.EventAddrInfo)
	put(p.Instance, resultAt, AddrResult{StructSize: uint32(unsafe.Sizeof(AddrResult{}))})
	must(t, p.Instance, "query_addrinfo", p.active, resultAt)
}
