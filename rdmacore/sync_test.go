package rdmacore

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"
)

// lacking skips a test of what the provider under test does not have: an old rdma-core, for one.
func lacking(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, syscall.ENOSYS) {
		t.Skip(err)
	}
}

// syncListener is a synchronous listener with QPs for its children.
func syncListener(t testing.TB, p *Provider, qp *QPInitAttr) *ID {
	t.Helper()
	listener, err := p.CreateEP(bounded(t), EPConfig{Passive: true, Source: here(t, 0), QP: qp})
	lacking(t, err)
	must(t, err)
	destroyAtEnd(t, listener)
	must(t, listener.Listen(8))
	return listener
}

func destroyAtEnd(t testing.TB, id *ID) {
	t.Helper()
	t.Cleanup(func() {
		if id.open() {
			if err := id.DestroyEP(); err != nil {
				t.Errorf("clean-up: %v", err)
			}
		}
	})
}

// syncClient is a synchronous id with its route resolved.
func syncClient(t testing.TB, p *Provider, destination netip.AddrPort, qp *QPInitAttr) *ID {
	t.Helper()
	client, err := p.CreateEP(bounded(t), EPConfig{Destination: destination, QP: qp})
	must(t, err)
	destroyAtEnd(t, client)
	return client
}

// syncPair is a connection of synchronous ids.
func syncPair(t testing.TB, p *Provider) (listener, client, server *ID) {
	t.Helper()
	listener = syncListener(t, p, &usualQP)
	client = syncClient(t, p, listener.LocalAddr(), &usualQP)
	must(t, client.Connect(&usualParam))
	server, err := listener.GetRequest(bounded(t))
	must(t, err)
	destroyAtEnd(t, server)
	must(t, server.Accept(&usualParam))
	must(t, client.Complete(bounded(t)))
	must(t, server.Complete(bounded(t)))
	return listener, client, server
}

func eventIs(t testing.TB, id *ID, want EventType, status int) *Event {
	t.Helper()
	event := id.Event()
	if event == nil || event.Type != want || event.Status != status {
		t.Fatalf("the id keeps %+v, want %s with status %d", event, want, status)
	}
	return event
}

func TestSynchronousConnection(t *testing.T) {
	p := opened(t)
	listener := syncListener(t, p, &usualQP)
	client := syncClient(t, p, listener.LocalAddr(), &usualQP)
	eventIs(t, client, EventRouteResolved, 0)

	param := usualParam
	param.PrivateData = []byte("hello")
	must(t, client.Connect(&param))
	refused(t, client.Disconnect(), syscall.EBUSY) // connect has not come to its end
	server, err := listener.GetRequest(bounded(t))
	must(t, err)
	destroyAtEnd(t, server)
	if server.QP() == nil || server.Channel() == listener.Channel() || !server.Synchronous() {
		t.Error("the child has no QP or no channel of its own")
	}
	request := eventIs(t, server, EventConnectRequest, 0)
	if request.Listener != listener || request.ID != server ||
		!bytes.HasPrefix(request.PrivateData, param.PrivateData) {
		t.Errorf("request %+v", request)
	}

	// As long as the child holds its request, librdmacm would not let go of the listener.
	err = listener.Destroy()
	refused(t, err, syscall.EBUSY)
	if want := "1 unacked CONNECT_REQUEST on listener "; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}

	must(t, server.Accept(&usualParam))
	must(t, client.Complete(bounded(t)))
	must(t, server.Complete(bounded(t)))
	eventIs(t, client, EventEstablished, 0)
	eventIs(t, server, EventEstablished, 0)
	must(t, listener.Destroy())

	must(t, client.Disconnect())
	must(t, server.Disconnect())
	must(t, client.Complete(bounded(t)))
	must(t, server.Complete(bounded(t)))
	eventIs(t, client, EventDisconnected, 0)
}

// complete waits for the end of a call of a synchronous id, which started is the result of.
func complete(t testing.TB, id *ID, started error) error {
	t.Helper()
	if started != nil {
		return started
	}
	return id.Complete(bounded(t))
}

// What rdma_connect(3) and others give when the event that ends them is a failure.
func TestSynchronousErrors(t *testing.T) {
	p := opened(t)
	listener := syncListener(t, p, nil)
	t.Run("no listener", func(t *testing.T) {
		nobody := netip.AddrPortFrom(listener.LocalAddr().Addr(), 9)
		client := syncClient(t, p, nobody, &usualQP)
		err := complete(t, client, client.Connect(&usualParam))
		refused(t, err, syscall.ECONNREFUSED)
		eventIs(t, client, EventRejected, 8)
		if err == nil || !strings.Contains(err.Error(), "INVALID_SERVICE_ID") {
			t.Errorf("%v does not say why", err)
		}
	})
	t.Run("rejected", func(t *testing.T) {
		client := syncClient(t, p, listener.LocalAddr(), &usualQP)
		must(t, client.Connect(&usualParam))
		server, err := listener.GetRequest(bounded(t))
		must(t, err)
		destroyAtEnd(t, server)
		must(t, server.Reject([]byte("no")))
		refused(t, client.Complete(bounded(t)), syscall.ECONNREFUSED)
		if event := eventIs(t, client, EventRejected, 28); !bytes.HasPrefix(event.PrivateData, []byte("no")) {
			t.Errorf("private data %q", event.PrivateData)
		}
		refused(t, client.Connect(&usualParam), syscall.EINVAL)
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := p.Clock().WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		_, err := listener.GetRequest(ctx)
		refused(t, err, context.DeadlineExceeded)
		client := syncClient(t, p, listener.LocalAddr(), &usualQP)
		must(t, client.Connect(&usualParam))
		refused(t, client.Complete(ctx), context.DeadlineExceeded)
		server, err := listener.GetRequest(bounded(t))
		must(t, err)
		must(t, server.CreateQP(nil, usualQP))
		must(t, server.Accept(nil))
		must(t, client.Complete(bounded(t)))
		must(t, server.Complete(bounded(t)))
		must(t, server.DestroyEP())
	})
}

func TestMigrateID(t *testing.T) {
	p := opened(t)
	first, second := newChannel(t, p), newChannel(t, p)
	_, client, server := syncPair(t, p)

	refused(t, client.MigrateID(nil), syscall.EINVAL)
	must(t, client.MigrateID(first))
	if client.Synchronous() || client.Channel() != first {
		t.Fatal("the id is synchronous still")
	}
	refused(t, client.MigrateID(first), syscall.EINVAL)
	must(t, client.Disconnect())
	must(t, server.Disconnect())
	must(t, server.Complete(bounded(t)))

	// An unread event moves with its id, from one channel to the next and to a synchronous id.
	readable(t, first)
	must(t, client.MigrateID(second))
	readable(t, second)
	must(t, client.MigrateID(nil))
	event, err := client.Channel().Wait(bounded(t), client)
	must(t, err)
	if event.Type != EventDisconnected || event.ID != client {
		t.Errorf("%s came along", event.Type)
	}
	refused(t, client.Channel().Close(), syscall.EINVAL)
	_, err = client.Channel().CreateID(PortSpaceTCP)
	refused(t, err, syscall.EINVAL)
}

// Children of a listener that was made synchronous have channels of their own.
func TestMigrateListener(t *testing.T) {
	p := opened(t)
	server := newSide(t, p)
	listener := listen(t, server, nil)
	lacking(t, listener.MigrateID(nil))
	client := syncClient(t, p, listener.LocalAddr(), &usualQP)
	must(t, client.Connect(&usualParam))
	child, err := listener.GetRequest(bounded(t))
	must(t, err)
	must(t, child.MigrateID(server.channel))
	must(t, child.Reject(nil))
	must(t, child.Destroy())
	refused(t, client.Complete(bounded(t)), syscall.ECONNREFUSED)
}

func TestHeldEvents(t *testing.T) {
	p := opened(t)
	client, server := newSide(t, p), newSide(t, p)
	listener := listen(t, server, &usualQP)
	must(t, server.channel.HoldEvents(true))
	request(t, client, listener, usualQP, &usualParam)
	held := expect(t, listener, EventConnectRequest, 0)
	server.id = held.ID
	err := listener.Destroy()
	refused(t, err, syscall.EBUSY)
	if err == nil || !strings.Contains(err.Error(), "1 unacked CONNECT_REQUEST on listener ") {
		t.Errorf("no blocker in %v", err)
	}
	refused(t, listener.MigrateID(nil), syscall.EBUSY)
	must(t, held.Ack())
	refused(t, held.Ack(), syscall.EINVAL)
	must(t, listener.Destroy())

	must(t, server.id.Accept(&usualParam))
	refused(t, expect(t, client.id, EventEstablished, 0).Ack(), syscall.EINVAL) // acknowledged when read
	established := expect(t, server.id, EventEstablished, 0)
	must(t, established.Ack())
	refused(t, (*Event)(nil).Ack(), syscall.EINVAL)
}

// Events that were read in the name of an id but never handed out do not keep it.
func TestHeldAndUnread(t *testing.T) {
	p := opened(t)
	client, server := newSide(t, p), newSide(t, p)
	must(t, server.channel.HoldEvents(true))
	listener := listen(t, server, nil)
	request(t, client, listener, usualQP, &usualParam)
	readable(t, server.channel)
	other, err := server.channel.CreateID(PortSpaceTCP)
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err = server.channel.Wait(ctx, other)
	refused(t, err, context.DeadlineExceeded)
	must(t, other.Destroy())
	must(t, listener.Destroy())
	expect(t, client.id, EventRejected, 28)
}
