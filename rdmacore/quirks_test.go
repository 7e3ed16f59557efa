package rdmacore

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Where librdmacm crashes, waits forever or leaks (each with its place there), there is an errno and a sentence.
// Others have tests elsewhere. Registration without PD and unsignaled waits are with messages, events that are not
// acknowledged with synchronous ids, and a lone send CQ with the lifetimes.

// rdma_accept(NULL) and rdma_connect(NULL) without a QP, and calls on ids without a device, follow NULL.
func TestQuirkNullPointers(t *testing.T) {
	p := opened(t)
	client, server := newSide(t, p), newSide(t, p)
	listener := listen(t, server, nil)
	request(t, client, listener, usualQP, &usualParam)
	child := expect(t, listener, EventConnectRequest, 0).ID
	server.id = child
	unbound := newID(t, client.channel, PortSpaceTCP)
	resolved, err := client.channel.CreateEP(bounded(t), EPConfig{Destination: listener.LocalAddr()})
	must(t, err)
	destroyAtEnd(t, resolved)
	for name, row := range map[string]struct {
		err  error
		want string
	}{
		"accept(NULL) without QP":   {child.Accept(nil), "without QP"},
		"connect(NULL) without QP":  {resolved.Connect(nil), "without QP"},
		"connect, unresolved":       {unbound.Connect(&usualParam), "resolved first"},
		"resolve route, unresolved": {unbound.ResolveRoute(time.Second), "resolved first"},
		"create QP, unbound":        {unbound.CreateQP(nil, usualQP), "no device"},
		"accept, unbound":           {unbound.Accept(&usualParam), ""},
		"reject, unbound":           {unbound.Reject(nil), ""},
		"disconnect, unbound":       {unbound.Disconnect(), ""},
		"establish, unbound":        {unbound.Establish(), ""},
		"join, unbound":             {unbound.JoinMulticast(group, 0), ""},
	} {
		if name == "join, unbound" && errors.Is(row.err, syscall.ENOSYS) {
			continue
		}
		refused(t, row.err, syscall.EINVAL)
		if row.err == nil || !strings.Contains(row.err.Error(), row.want) {
			t.Errorf("%s: %v does not say %q", name, row.err, row.want)
		}
	}
	must(t, child.Reject(nil))
	expect(t, client.id, EventRejected, 28)
}

// The length of private data is a byte, into which the data of the address and the caller's are added.
func TestQuirkPrivateDataOverflow(t *testing.T) {
	p := opened(t)
	client := newSide(t, p)
	listener := listen(t, client, nil)
	id, err := client.channel.CreateEP(bounded(t), EPConfig{Destination: listener.LocalAddr(), QP: &usualQP,
		Connect: make([]byte, 200)})
	must(t, err)
	destroyAtEnd(t, id)
	param := usualParam
	param.PrivateData = make([]byte, 56)
	refused(t, id.Connect(&param), syscall.EINVAL)
	refused(t, id.Connect(nil), syscall.EINVAL) // 200 bytes are more than a REQ holds
	refused(t, id.Reject(make([]byte, 256)), syscall.EINVAL)
}

// rdma_create_qp(3) writes its CQs into the caller's attributes, so that a second id would share them.
func TestQuirkAttributesStayTheCallers(t *testing.T) {
	p := opened(t)
	channel := newChannel(t, p)
	attr := usualQP
	var ids [2]*ID
	for at := range ids {
		var err error
		ids[at], err = channel.CreateEP(bounded(t), EPConfig{Destination: here(t, 7471), QP: &attr})
		must(t, err)
		destroyAtEnd(t, ids[at])
	}
	if attr != usualQP || ids[0].SendCQ() == ids[1].SendCQ() {
		t.Error("the attributes were changed, or the ids share a CQ")
	}
}

// A synchronous call takes the next event for its end, whatever it is (ucma_complete): also the disconnect
// of a peer that was faster.
func TestQuirkAnyEventEndsACall(t *testing.T) {
	_, client, server := syncPair(t, opened(t))
	must(t, server.Disconnect())
	readable(t, client.Channel())
	must(t, complete(t, client, client.Disconnect()))
	eventIs(t, client, EventDisconnected, 0)
	must(t, server.Complete(bounded(t)))
}

// A synchronous listener's wait for a request, and a call on an id that does not listen, would not end.
func TestQuirkWaitsWithoutEnd(t *testing.T) {
	p := opened(t)
	id, err := p.CreateID(PortSpaceTCP)
	lacking(t, err)
	must(t, err)
	destroyAtEnd(t, id)
	_, err = id.GetRequest(context.Background())
	refused(t, err, syscall.EINVAL)
	must(t, id.Complete(context.Background())) // nothing is under way
	channel := newChannel(t, p)
	on := newID(t, channel, PortSpaceTCP)
	_, err = on.GetRequest(context.Background())
	refused(t, err, syscall.EINVAL)
	refused(t, channel.Close(), syscall.EBUSY)
}

// A datagram listener's answers are statuses that the synchronous errno alone would hide (SIDR 1 is EPERM).
func TestQuirkDatagramErrnos(t *testing.T) {
	p := opened(t)
	id, err := p.CreateID(PortSpaceUDP)
	if errors.Is(err, syscall.EPROTONOSUPPORT) || errors.Is(err, syscall.ENOSYS) {
		t.Skip(err)
	}
	must(t, err)
	destroyAtEnd(t, id)
	must(
		t,
		id.step(bounded(t), id.ResolveAddr(netip.AddrPort{}, here(t, 9), time.Second), EventAddrResolved, time.Second),
	)
	must(t, id.step(bounded(t), id.ResolveRoute(time.Second), EventRouteResolved, time.Second))
	err = complete(t, id, id.Connect(&ConnParam{QPNum: 1}))
	refused(t, err, syscall.EPERM)
	eventIs(t, id, EventUnreachable, 1)
	if err == nil || !strings.Contains(err.Error(), "UNSUPPORTED") {
		t.Errorf("%v does not name the status", err)
	}
}

// Every method of an object that is nil or gone answers EBADF.
func TestQuirkDestroyedObjects(t *testing.T) {
	channel := newChannel(t, opened(t))
	id, err := channel.CreateID(PortSpaceTCP)
	must(t, err)
	must(t, id.Destroy())
	for _, id := range []*ID{nil, id} {
		_, request := id.GetRequest(bounded(t))
		_, remote := id.GetRemoteECE()
		_, _, attr := id.InitQPAttr(QPStateInit)
		_, query := id.QueryAddrInfo()
		for at, err := range []error{id.Destroy(), id.DestroyEP(), id.DestroyQP(), id.BindAddr(netip.AddrPort{}),
			id.ResolveAddr(netip.AddrPort{}, here(t, 1), 0), id.ResolveRoute(0), id.Listen(0), id.Connect(nil),
			id.Accept(nil), id.Reject(nil), id.RejectECE(nil), id.Establish(), id.Disconnect(), id.Notify(0),
			id.CreateQP(nil, usualQP), id.CreateQPEx(nil, QPInitAttrEx{}),
			id.SetOption(OptionID, OptionTOS, []byte{0}), id.SetIBPath(nil),
			id.SetLocalECE(ECE{}), id.JoinMulticast(group, 0), id.LeaveMulticast(group), id.MigrateID(nil),
			id.Complete(bounded(t)), id.WriteEvent(0, 0), id.ResolveAddrInfo("", "", nil), request, remote, attr,
			query} {
			if !errors.Is(err, syscall.EBADF) {
				t.Errorf("call %d: %v", at, err)
			}
		}
		if id.QP() != nil || id.Event() != nil || id.LocalAddr().IsValid() || id.SrcPort() != 0 || id.Device() != nil {
			t.Error("something is left of an id that is gone")
		}
	}
}
