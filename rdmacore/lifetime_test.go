package rdmacore

import (
	"context"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// TestClosed: every method of an object that is gone answers EBADF.
func TestClosed(t *testing.T) {
	client, server := connected(t)
	p := opened(t)
	id, qp, cq := client.id, client.id.QP(), client.id.SendCQ()
	client.destroy(t)
	expect(t, server.id, EventDisconnected, 0)

	device, err := p.DefaultDevice()
	must(t, err)
	own, err := device.CreateCQ(1)
	must(t, err)
	must(t, own.Destroy())
	channel, err := p.CreateEventChannel()
	must(t, err)
	must(t, channel.Close())
	pd, err := device.AllocPD()
	must(t, err)
	memory, err := NewMemory(1)
	must(t, err)
	defer memory.Release()
	mr, err := pd.RegMR(memory, 0, 1, 0)
	must(t, err)
	must(t, mr.Dereg())
	must(t, pd.Dealloc())

	ctx := bounded(t)
	calls := map[string]func(nothing bool) error{
		"ID": func(nothing bool) error {
			id := pick(id, nothing)
			return same(t, id.BindAddr(here(t, 0)), id.ResolveAddr(netip.AddrPort{}, here(t, 1), time.Second),
				id.ResolveRoute(time.Second), id.Listen(0), id.CreateQP(nil, usualQP), id.DestroyQP(),
				id.Connect(nil), id.Accept(nil), id.Reject(nil), id.Establish(), id.Disconnect(),
				id.Destroy(), id.DestroyEP())
		},
		"QP": func(nothing bool) error {
			qp := pick(qp, nothing)
			_, send := qp.PostSend(nil, nil)
			_, recv := qp.PostRecv(nil, nil)
			_, sendAt := qp.postSendAt(0, 0, nil, nil)
			_, recvAt := qp.postRecvAt(0, 0, nil, nil)
			_, query := qp.Query()
			return same(t, send, recv, sendAt, recvAt, query, qp.Modify(QPAttr{}, 0))
		},
		"CQ":     func(nothing bool) error { return closedCQ(ctx, t, pick(cq, nothing)) },
		"own CQ": func(nothing bool) error { return closedCQ(ctx, t, pick(own, nothing)) },
		"EventChannel": func(nothing bool) error {
			channel := pick(channel, nothing)
			_, create := channel.CreateID(PortSpaceTCP)
			_, ep := channel.CreateEP(ctx, EPConfig{})
			_, get := channel.GetEvent(ctx)
			_, wait := channel.Wait(ctx, server.id)
			_, pending := channel.Pending()
			return same(t, create, ep, get, wait, pending, channel.Close())
		},
		"PD": func(nothing bool) error {
			pd := pick(pd, nothing)
			_, reg := pd.RegMR(memory, 0, 1, 0)
			return same(t, reg, pd.Dealloc())
		},
		"MR": func(nothing bool) error { return pick(mr, nothing).Dereg() },
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			refused(t, call(false), syscall.EBADF)
			refused(t, call(true), syscall.EBADF)
		})
	}
	if mr.LKey() != 0 || mr.RKey() != 0 || mr.Address() != 0 || id.QP() != nil || id.SendCQ() != nil ||
		id.Device() != nil || id.PD() != nil || id.LocalAddr().IsValid() {
		t.Error("something of a closed object is left")
	}
	_, err = server.channel.Wait(ctx, id)
	refused(t, err, syscall.EBADF)
	refused(t, server.id.CreateQP(pd, usualQP), syscall.EBADF)
	refused(t, server.id.CreateQP(nil, QPInitAttr{SendCQ: own}), syscall.EBADF)
}

func closedCQ(ctx context.Context, t *testing.T, cq *CQ) error {
	_, poll := cq.Poll(make([]WC, 1))
	_, wait := cq.Wait(ctx, make([]WC, 1))
	return same(t, poll, wait, cq.WaitEvent(ctx), cq.RequestNotify(false), cq.Destroy())
}

// pick is the object, or nil.
func pick[T any](object *T, nothing bool) *T {
	if nothing {
		return nil
	}
	return object
}

// same checks that all errors are EBADF and returns one.
func same(t *testing.T, errs ...error) error {
	t.Helper()
	for i, err := range errs {
		if err == nil {
			t.Errorf("call %d succeeded", i)
			continue
		}
		refused(t, err, syscall.EBADF)
	}
	return errs[0]
}

// TestOrder: parents refuse to go before their children.
func TestOrder(t *testing.T) {
	client, server := connected(t)
	refused(t, client.id.Destroy(), syscall.EBUSY)
	refused(t, client.channel.Close(), syscall.EBUSY)
	refused(t, client.pd.Dealloc(), syscall.EBUSY)
	refused(t, client.id.SendCQ().Destroy(), syscall.EINVAL)
	refused(t, opened(t).Close(), syscall.EBUSY)
	refused(t, server.id.CreateQP(nil, usualQP), syscall.EINVAL)
	client.recv(t, 1, 0, 8) // and all of them live on
}

// TestOwnQueues: a QP with CQs of the caller's, one for both directions, which outlive it.
func TestOwnQueues(t *testing.T) {
	p := opened(t)
	device, err := p.DefaultDevice()
	must(t, err)
	cq, err := device.CreateCQ(64)
	must(t, err)
	atEnd(t, cq.Destroy)
	client, server := newSide(t, p), newSide(t, p)
	listener := listen(t, server, &usualQP)
	before := p.Live()
	own := usualQP
	own.SendCQ, own.RecvCQ = cq, cq
	request(t, client, listener, own, &usualParam)
	after := p.Live()
	if after[KindCQ] != before[KindCQ] || after[KindQP] != before[KindQP]+1 {
		t.Errorf("alive before %s, after %s", before, after)
	}
	refused(t, cq.Destroy(), syscall.EBUSY)
	if client.id.SendCQ() != cq || client.id.RecvCQ() != cq {
		t.Error("the QP has other CQs")
	}
	server.id = expect(t, listener, EventConnectRequest, 0).ID
	server.recv(t, 1, 0, 8)
	must(t, server.id.Accept(&usualParam))
	expect(t, client.id, EventEstablished, 0)
	client.send(t, SendWR{WRID: 2, Opcode: OpSend, Flags: SendSignaled}, 0, 8)
	completion(t, cq, 2, WCSuccess)
	client.destroy(t)
	if n, err := cq.Poll(make([]WC, 1)); n != 0 || err != nil {
		t.Errorf("poll after the QP is gone: %d, %v", n, err)
	}
}

// TestOneQueueGiven: the queue that is created next to a given one is counted and freed, too.
func TestOneQueueGiven(t *testing.T) {
	p := opened(t)
	device, err := p.DefaultDevice()
	must(t, err)
	cq, err := device.CreateCQ(64)
	must(t, err)
	atEnd(t, cq.Destroy)
	for _, attr := range []QPInitAttr{{SendCQ: cq}, {RecvCQ: cq}, {}} {
		channel := newChannel(t, p)
		id, err := channel.CreateEP(bounded(t), EPConfig{Destination: here(t, 1)})
		must(t, err)
		before := p.Live()
		must(t, id.CreateQP(nil, attr))
		pd := id.PD()
		if pd == nil || pd.Device() != device {
			t.Fatal("no default PD")
		}
		refused(t, pd.Dealloc(), syscall.EINVAL)
		must(t, id.DestroyQP())
		if after := p.Live(); after.String() != before.String() {
			t.Errorf("alive before %s, after %s", before, after)
		}
		own, err := device.AllocPD()
		must(t, err)
		must(t, id.CreateQP(own, attr))
		if id.PD() != own {
			t.Error("the id does not know its PD")
		}
		must(t, id.DestroyQP())
		must(t, own.Dealloc())
		must(t, id.CreateQP(nil, attr)) // and again with the default
		must(t, id.DestroyEP())
	}
}

// TestMemoryOutlivesOwner: a region keeps its memory.
func TestMemoryOutlivesOwner(t *testing.T) {
	pd := newPD(t, opened(t))
	memory, err := NewMemory(1)
	must(t, err)
	mr, err := pd.RegMR(memory, 0, 1, AccessLocalWrite)
	must(t, err)
	memory.Release()
	if memory.Bytes() == nil {
		t.Fatal("unmapped under its region")
	}
	must(t, mr.Dereg())
	if memory.Bytes() != nil {
		t.Error("still mapped")
	}
	_, err = pd.RegMR(memory, 0, 1, 0)
	refused(t, err, syscall.EBADF)
}

func TestRegionBounds(t *testing.T) {
	pd := newPD(t, opened(t))
	memory, err := NewMemory(4096)
	must(t, err)
	defer memory.Release()
	for _, row := range []struct{ offset, length int }{
		{-1, 1}, {0, -1}, {0, 4097}, {4096, 1}, {4097, 0}, {1, 4096}, {1, int(^uint(0) >> 1)},
	} {
		_, err := pd.RegMR(memory, row.offset, row.length, AccessLocalWrite)
		refused(t, err, syscall.EFAULT)
	}
	_, err = pd.RegMR(memory, 0, 1, AccessRemoteWrite)
	refused(t, err, syscall.EINVAL)
	mr, err := pd.RegMR(memory, 16, 4080, AccessLocalWrite|AccessRelaxedOrdering)
	must(t, err)
	if mr.Address() != uint64(memory.Base())+16 || mr.Length() != 4080 {
		t.Errorf("%d bytes at %#x", mr.Length(), mr.Address())
	}
	must(t, mr.Dereg())
}
