package rdmacore

import (
	"context"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ended is a context that is over.
func ended() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func ofQP(qp *QP) func(AsyncEvent) bool { return func(e AsyncEvent) bool { return e.QP == qp } }

// trespass has the target of a connection raise QP_ACCESS_ERR.
func trespass(t *testing.T, client *side) {
	t.Helper()
	client.send(t, SendWR{WRID: 1, Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: 1}, 0, 64)
	completion(t, client.id.SendCQ(), 1, WCRemAccessErr)
}

func isAccessErr(t *testing.T, event AsyncEvent, of *side) {
	t.Helper()
	if event.Type != AsyncQPAccessErr || event.QP != of.id.QP() || event.ID != of.id || event.Port != 0 ||
		!event.OfObject() {
		t.Errorf("event %+v", event)
	}
}

// TestAsyncWaiters: each goroutine that waits on one device gets its own events, read by any of them. This holds also
// when one that reads for the others is cancelled.
func TestAsyncWaiters(t *testing.T) {
	softOnly(t, "events of refused requests")
	const pairs = 8
	var clients, servers []*side
	for range pairs {
		client, server := connected(t)
		clients, servers = append(clients, client), append(servers, server)
	}
	device := servers[0].id.Device()
	impatient, cancel := context.WithCancel(context.Background())
	defer cancel()
	quit := make(chan error, 1)
	go func() {
		_, err := device.WaitAsyncEvent(impatient, func(AsyncEvent) bool { return false })
		quit <- err
	}()
	var all sync.WaitGroup
	for _, server := range servers {
		all.Add(1)
		go func() {
			defer all.Done()
			event, err := device.WaitAsyncEvent(bounded(t), ofQP(server.id.QP()))
			if err != nil {
				t.Error(err)
				return
			}
			isAccessErr(t, event, server)
		}()
	}
	for at, client := range clients {
		if at == pairs/2 {
			cancel()
		}
		trespass(t, client)
	}
	all.Wait()
	refused(t, <-quit, context.Canceled)
}

// TestAsyncKept: what one does not want is kept for others, as long as the object lives that it is of.
func TestAsyncKept(t *testing.T) {
	softOnly(t, "events of refused requests")
	client, server := connected(t)
	other, gone := connected(t)
	device, qp := server.id.Device(), gone.id.QP()
	trespass(t, client)
	trespass(t, other)
	_, err := device.WaitAsyncEvent(ended(), func(AsyncEvent) bool { return false })
	refused(t, err, context.Canceled)

	// Looking does not take.
	seen := 0
	events, err := device.PendingAsyncEvents(func(e AsyncEvent) bool {
		if e.QP == qp || e.QP == server.id.QP() {
			seen++
		}
		return false
	})
	if err != nil || events != nil || seen != 2 {
		t.Errorf("%d are kept, %v taken, %v", seen, events, err)
	}
	gone.destroy(t)
	if events, err := device.PendingAsyncEvents(ofQP(qp)); err != nil || events != nil {
		t.Errorf("of a QP that is gone: %v, %v", events, err)
	}
	// A context that has ended takes what is there.
	event, err := device.WaitAsyncEvent(ended(), ofQP(server.id.QP()))
	must(t, err)
	isAccessErr(t, event, server)
	_, err = device.WaitAsyncEvent(ended(), ofQP(server.id.QP()))
	refused(t, err, context.Canceled)
}

// TestAsyncUnread: unread events are found, with an ended context and without one.
func TestAsyncUnread(t *testing.T) {
	softOnly(t, "events of refused requests")
	client, server := connected(t)
	other, second := connected(t)
	trespass(t, client)
	event, err := server.id.Device().WaitAsyncEvent(ended(), ofQP(server.id.QP()))
	must(t, err)
	isAccessErr(t, event, server)
	trespass(t, other)
	events, err := second.id.Device().PendingAsyncEvents(ofQP(second.id.QP()))
	must(t, err)
	if len(events) != 1 {
		t.Fatalf("%d events", len(events))
	}
	isAccessErr(t, events[0], second)
}

// TestAsyncOfSRQInUse: an SRQ that cannot be destroyed keeps its event.
func TestAsyncOfSRQInUse(t *testing.T) {
	client, server, srq := connectedToShared(t)
	device, ofSRQ := server.id.Device(), func(e AsyncEvent) bool { return e.SRQ == srq }
	for id := range uint64(2) {
		_, err := srq.PostRecv([]RecvWR{{WRID: id, NumSGE: 1}}, []SGE{server.sge(0, 64)})
		must(t, err)
	}
	must(t, srq.Arm(2))
	client.send(t, SendWR{WRID: 1, Opcode: OpSend, Flags: SendSignaled}, 0, 8)
	completion(t, client.id.SendCQ(), 1, WCSuccess)
	completion(t, server.id.RecvCQ(), 0, WCSuccess)
	for seen := 0; seen == 0; { // read, and kept
		_, err := device.PendingAsyncEvents(func(e AsyncEvent) bool {
			if ofSRQ(e) {
				seen++
			}
			return false
		})
		must(t, err)
		must(t, bounded(t).Err())
	}
	refused(t, srq.Destroy(), syscall.EBUSY)
	event, err := device.WaitAsyncEvent(bounded(t), ofSRQ)
	must(t, err)
	if event.Type != AsyncSRQLimitReached || event.ID != nil || event.QP != nil {
		t.Errorf("event %+v", event)
	}
	server.destroy(t)
	must(t, srq.Destroy())
}

// On a virtual clock each looks for itself, and no time passes.
func TestAsyncVirtually(t *testing.T) {
	p := openVirtual(t, 1)
	var clients, servers []*side
	for range 3 {
		server, client := newSide(t, p), newSide(t, p)
		listener := listen(t, server, &usualQP)
		request(t, client, listener, usualQP, &usualParam)
		server.id = expect(t, listener, EventConnectRequest, 0).ID
		must(t, server.id.Accept(&usualParam))
		expect(t, client.id, EventEstablished, 0)
		expect(t, server.id, EventEstablished, 0)
		clients, servers = append(clients, client), append(servers, server)
	}
	clock, device := p.Clock(), servers[0].id.Device()
	clock.Enter()
	defer clock.Leave()
	results := make(chan error, len(servers)+1)
	for _, server := range servers {
		clock.Launch(func() {
			ctx, cancel := clock.WithTimeout(context.Background(), time.Hour)
			defer cancel()
			event, err := device.WaitAsyncEvent(ctx, ofQP(server.id.QP()))
			if err == nil {
				isAccessErr(t, event, server)
			}
			results <- err
		})
	}
	began := clock.Now()
	clock.Launch(func() {
		ctx, cancel := clock.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_, err := device.WaitAsyncEvent(ctx, func(AsyncEvent) bool { return false })
		refused(t, err, context.DeadlineExceeded)
		if took := clock.Now() - began; took != time.Minute {
			t.Errorf("gave up after %s", took)
		}
		results <- nil
	})
	for at := range clients { // the last first
		trespass(t, clients[len(clients)-1-at])
	}
	for range cap(results) {
		clock.Outside(func() {
			select {
			case err := <-results:
				if err != nil {
					t.Error(err)
				}
			case <-bounded(t).Done():
				t.Error("a waiter waits forever")
			}
		})
	}
}

// A device that is closed ends the waits for it, and a closed one has none.
func TestAsyncOfAClosedDevice(t *testing.T) {
	p, err := Open("soft")
	must(t, err)
	device, err := p.DefaultDevice()
	must(t, err)
	_, err = device.WaitAsyncEvent(ended(), func(AsyncEvent) bool { return true })
	refused(t, err, context.Canceled)
	must(t, p.Close())
	_, err = device.WaitAsyncEvent(bounded(t), func(AsyncEvent) bool { return true })
	refused(t, err, syscall.EBADF)
	_, err = device.PendingAsyncEvents(func(AsyncEvent) bool { return true })
	refused(t, err, syscall.EBADF)
}
