package rdmacore

import (
	"errors"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

var group = netip.MustParseAddr("239.1.2.3")

// datagram is an id of the port space UDP, where the provider has that.
func datagram(t testing.TB, channel *EventChannel) *ID {
	t.Helper()
	id, err := channel.CreateID(PortSpaceUDP)
	if errors.Is(err, syscall.EPROTONOSUPPORT) {
		t.Skip(err)
	}
	must(t, err)
	destroyAtEnd(t, id)
	lacking(t, id.JoinMulticast(group, 0))
	return id
}

// datagramID is a datagram id with device and QP.
func datagramID(t testing.TB, id *ID, pd *PD) {
	t.Helper()
	destination := here(t, 7471)
	must(
		t,
		id.step(bounded(t), id.ResolveAddr(netip.AddrPort{}, destination, time.Second), EventAddrResolved, time.Second),
	)
	qp := usualQP
	qp.MaxInlineData = 0
	err := id.CreateQP(pd, qp)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		t.Skip(err)
	}
	must(t, err)
}

func TestMulticast(t *testing.T) {
	p := opened(t)
	channel, pd := newChannel(t, p), newPD(t, p)
	id := datagram(t, channel)
	refused(t, id.JoinMulticast(group, 0), syscall.EINVAL) // without a device
	datagramID(t, id, pd)
	must(t, id.JoinMulticast(group, 42))
	event := expect(t, id, EventMulticastJoin, 0)
	if event.UD == nil || event.Arg != 42 || event.UD.QPNum != 0xffffff || !event.UD.AH.DGID.IsValid() {
		t.Errorf("joined: %+v %+v", event, event.UD)
	}
	must(t, id.LeaveMulticast(group))
	refused(t, id.LeaveMulticast(group), syscall.EADDRNOTAVAIL)
	refused(t, id.JoinMulticastEx(group, 7, 0), syscall.EINVAL)
	refused(t, id.JoinMulticast(netip.Addr{}, 0), syscall.EINVAL)
}

// A synchronous id keeps the event that ended its join, for which rdma_leave_multicast(3) would wait.
func TestSynchronousMulticast(t *testing.T) {
	p := opened(t)
	id, err := p.CreateID(PortSpaceUDP)
	lacking(t, err)
	must(t, err)
	pd := newPD(t, p)
	destroyAtEnd(t, id)
	datagramID(t, id, pd)
	must(t, complete(t, id, id.JoinMulticast(group, 7)))
	eventIs(t, id, EventMulticastJoin, 0)
	must(t, id.LeaveMulticast(group))
}
