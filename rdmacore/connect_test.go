package rdmacore

import (
	"bytes"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"
)

func TestConnect(t *testing.T) {
	p := opened(t)
	client, server := newSide(t, p), newSide(t, p)
	listener := listen(t, server, &usualQP)
	param := usualParam
	param.ResponderResources, param.InitiatorDepth = 3, 2
	param.PrivateData = []byte("hello")
	request(t, client, listener, usualQP, &param)

	asked := expect(t, listener, EventConnectRequest, 0)
	server.id = asked.ID
	if asked.Listener != listener || asked.ID.QP() == nil || asked.ID.Channel() != server.channel {
		t.Error("the child is not the listener's, or has no QP")
	}
	if !bytes.HasPrefix(asked.PrivateData, []byte("hello\x00")) || len(asked.PrivateData) != 56 {
		t.Errorf("private data of %d bytes: %q", len(asked.PrivateData), asked.PrivateData)
	}
	if asked.Conn.ResponderResources != 2 || asked.Conn.InitiatorDepth != 3 {
		t.Errorf("depths %d and %d, want those of the peer swapped", asked.Conn.ResponderResources,
			asked.Conn.InitiatorDepth)
	}
	reply := usualParam
	reply.PrivateData = []byte("welcome")
	must(t, server.id.Accept(&reply))
	up := expect(t, client.id, EventEstablished, 0)
	if !bytes.HasPrefix(up.PrivateData, []byte("welcome\x00")) || len(up.PrivateData) != 196 {
		t.Errorf("private data of %d bytes: %q", len(up.PrivateData), up.PrivateData)
	}
	expect(t, server.id, EventEstablished, 0)

	for _, s := range []*side{client, server} {
		attr, err := s.id.QP().Query()
		must(t, err)
		if attr.State != QPStateRTS {
			t.Errorf("state %s", attr.State)
		}
		if s.id.Device() == nil || s.id.PD() != s.pd || s.id.PortSpace() != PortSpaceTCP {
			t.Error("the id does not know its device, PD or port space")
		}
	}
	if client.id.PeerAddr() != listener.LocalAddr() || client.id.LocalAddr() != server.id.PeerAddr() {
		t.Errorf("addresses: client %s to %s, server %s to %s", client.id.LocalAddr(),
			client.id.PeerAddr(), server.id.LocalAddr(), server.id.PeerAddr())
	}
}

func TestReject(t *testing.T) {
	p := opened(t)
	client, server := newSide(t, p), newSide(t, p)
	listener := listen(t, server, nil)
	request(t, client, listener, usualQP, &usualParam)
	child := expect(t, listener, EventConnectRequest, 0).ID
	must(t, child.Reject([]byte("not today")))
	event := expect(t, client.id, EventRejected, 28)
	if !bytes.HasPrefix(event.PrivateData, []byte("not today")) {
		t.Errorf("private data %q", event.PrivateData)
	}
	refused(t, event.Err(), syscall.ECONNREFUSED)
	must(t, child.Destroy())
}

func TestNobodyListens(t *testing.T) {
	p := opened(t)
	client, server := newSide(t, p), newSide(t, p)
	listener := listen(t, server, nil)
	address := listener.LocalAddr()
	must(t, listener.Destroy())
	var err error
	client.id, err = client.channel.CreateEP(bounded(t), EPConfig{Destination: address, QP: &usualQP})
	must(t, err)
	must(t, client.id.Connect(&usualParam))
	event := expect(t, client.id, EventRejected, 8)
	refused(t, event.Err(), syscall.ECONNREFUSED)
	if got := event.Err().Error(); got != "REJECTED with status 8 (INVALID_SERVICE_ID)" {
		t.Error(got)
	}
	refused(t, client.id.Connect(&usualParam), syscall.EINVAL) // a rejected id is used up
}

// TestListenerDestroyed: an unread request is rejected when its listener is destroyed. It may still be in the channel,
// or have been read on the way to another event.
func TestListenerDestroyed(t *testing.T) {
	for _, read := range []bool{false, true} {
		p := opened(t)
		client, server := newSide(t, p), newSide(t, p)
		listener := listen(t, server, &usualQP)
		request(t, client, listener, usualQP, &usualParam)
		readable(t, server.channel)
		if read {
			other, err := server.channel.CreateID(PortSpaceTCP)
			must(t, err)
			must(t, other.ResolveAddr(netip.AddrPort{}, here(t, 1), time.Second))
			expect(t, other, EventAddrResolved, 0)
			must(t, other.Destroy())
		}
		must(t, listener.Destroy())
		expect(t, client.id, EventRejected, 28)
	}
}

func TestDisconnect(t *testing.T) {
	client, server := connected(t)
	for id := range uint64(3) {
		client.recv(t, 10+id, 0, 64)
		server.recv(t, 20+id, 0, 64)
	}
	must(t, client.id.Disconnect())
	expect(t, server.id, EventDisconnected, 0)
	must(t, server.id.Disconnect()) // answers the client's request
	expect(t, client.id, EventDisconnected, 0)
	for id := range uint64(3) {
		completion(t, client.id.RecvCQ(), 10+id, WCWRFlushErr)
		completion(t, server.id.RecvCQ(), 20+id, WCWRFlushErr)
	}
	for _, s := range []*side{client, server} {
		attr, err := s.id.QP().Query()
		must(t, err)
		if attr.State != QPStateErr {
			t.Errorf("state %s after the disconnect", attr.State)
		}
		// In ERR requests are taken and flushed.
		if onSoft("late receives") {
			s.recv(t, 30, 0, 64)
			completion(t, s.id.RecvCQ(), 30, WCWRFlushErr)
		}
		s.send(t, SendWR{WRID: 31, Opcode: OpSend}, 0, 64)
		completion(t, s.id.SendCQ(), 31, WCWRFlushErr)
	}
}

func TestPeerDestroysID(t *testing.T) {
	client, server := connected(t)
	client.destroy(t)
	expect(t, server.id, EventDisconnected, 0)
}

// TestGuards: what would crash or confuse librdmacm is refused with a sentence.
func TestGuards(t *testing.T) {
	p := opened(t)
	s := newSide(t, p)
	id, err := s.channel.CreateID(PortSpaceTCP)
	must(t, err)
	s.id = id
	long := &ConnParam{PrivateData: make([]byte, 256)}
	for name, err := range map[string]error{
		"accept without a QP":     id.Accept(nil),
		"accept unbound":          id.Accept(&usualParam),
		"connect unresolved":      id.Connect(&usualParam),
		"connect by default":      id.Connect(nil),
		"route before address":    id.ResolveRoute(time.Second),
		"create_qp unbound":       id.CreateQP(nil, usualQP),
		"create_qp unbound, PD":   id.CreateQP(s.pd, usualQP),
		"reject unbound":          id.Reject(nil),
		"disconnect unbound":      id.Disconnect(),
		"establish unbound":       id.Establish(),
		"too much private data":   id.Connect(long),
		"too much in a reject":    id.Reject(make([]byte, 256)),
		"resolve nothing":         id.ResolveAddr(netip.AddrPort{}, netip.AddrPort{}, time.Second),
		"resolve across families": id.ResolveAddr(here(t, 0), netip.MustParseAddrPort("[::1]:1"), time.Second),
	} {
		refused(t, err, syscall.EINVAL)
		if failure, ok := err.(*Error); !ok || failure.Why == "" {
			t.Errorf("%s: no reason given: %v", name, err)
		}
	}
	if id.Device() != nil || id.PD() != nil || id.QP() != nil || id.PeerAddr().IsValid() {
		t.Error("an unbound id has a device, PD, QP or peer")
	}
	other := newChannel(t, p)
	_, err = other.Wait(bounded(t), id)
	refused(t, err, syscall.EINVAL)
}

func TestAddressErrors(t *testing.T) {
	p := opened(t)
	s := newSide(t, p)
	listener := listen(t, s, nil)
	for _, row := range []struct {
		address netip.AddrPort
		want    syscall.Errno
	}{
		{listener.LocalAddr(), syscall.EADDRINUSE},
		{netip.MustParseAddrPort("198.51.100.1:1234"), syscall.EADDRNOTAVAIL},
	} {
		_, err := s.channel.CreateEP(bounded(t), EPConfig{Passive: true, Source: row.address})
		refused(t, err, row.want)
		if failure, ok := err.(*Error); !ok || failure.Why == "" {
			t.Errorf("%s: no reason given: %v", row.address, err)
		}
	}
	_, err := s.channel.CreateEP(bounded(t), EPConfig{Destination: netip.MustParseAddrPort("198.51.100.1:1234")})
	if err == nil {
		t.Error("an address without a device was resolved")
	}
	if got := p.Live()[KindID]; got != 1 {
		t.Errorf("%d ids are left of failed endpoints", got-1)
	}
}

// TestOwnAddresses: soft is at every address of the host, and each has a GID.
func TestOwnAddresses(t *testing.T) {
	p, err := Open("soft")
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	interfaces, err := net.InterfaceAddrs()
	must(t, err)
	addresses := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.9.8.7"), netip.IPv6Loopback()}
	for _, address := range interfaces {
		prefix, err := netip.ParsePrefix(address.String())
		must(t, err)
		if !prefix.Addr().IsLinkLocalUnicast() { // which names no interface
			addresses = append(addresses, prefix.Addr())
		}
	}
	for _, address := range addresses {
		t.Run(address.String(), func(t *testing.T) {
			client, server := newSide(t, p), newSide(t, p)
			listener, err := server.channel.CreateEP(bounded(t), EPConfig{Passive: true,
				Source: netip.AddrPortFrom(address, 0), PD: server.pd, QP: &usualQP})
			must(t, err)
			defer func() { must(t, listener.Destroy()) }()
			must(t, listener.Listen(1))
			request(t, client, listener, usualQP, &usualParam)
			server.id = expect(t, listener, EventConnectRequest, 0).ID
			must(t, server.id.Accept(&usualParam))
			expect(t, client.id, EventEstablished, 0)
			expect(t, server.id, EventEstablished, 0)
			if from, to := server.id.PeerAddr().Addr(), server.id.LocalAddr().Addr(); from != address || to != address {
				t.Errorf("the server has a connection from %s to %s", from, to)
			}
			ports, err := client.id.Device().Ports()
			must(t, err)
			if !slices.ContainsFunc(ports[0].GIDs, func(gid GID) bool { return gid.Address == address }) {
				t.Errorf("no GID for %s: %+v", address, ports[0].GIDs)
			}
		})
	}
}
