package rdmacore

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"
)

// anyEvent accepts each asynchronous event.
func anyEvent(AsyncEvent) bool { return true }

// TestCancel: every wait ends with its context, by cancellation and by deadline, and says what it waited for.
func TestCancel(t *testing.T) {
	client, server := connected(t)
	device, err := opened(t).DefaultDevice()
	must(t, err)
	drainAsyncEvents(t, device)
	waits := map[string]func(ctx context.Context) error{
		"GetEvent": func(ctx context.Context) error {
			_, err := client.channel.GetEvent(ctx)
			return err
		},
		"EventChannel.Wait": func(ctx context.Context) error {
			_, err := server.channel.Wait(ctx, server.id)
			return err
		},
		"CQ.Wait": func(ctx context.Context) error {
			_, err := client.id.RecvCQ().Wait(ctx, make([]WC, 1))
			return err
		},
		"CQ.WaitEvent": func(ctx context.Context) error { return client.id.SendCQ().WaitEvent(ctx) },
		"WaitAsyncEvent": func(ctx context.Context) error {
			_, err := device.WaitAsyncEvent(ctx, anyEvent)
			return err
		},
	}
	for name, wait := range waits {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() { ended <- wait(ctx) }()
			time.Sleep(20 * time.Millisecond)
			select {
			case err := <-ended:
				t.Fatalf("ended by itself: %v", err)
			default:
			}
			cancel()
			select {
			case err := <-ended:
				refused(t, err, context.Canceled)
			case <-time.After(30 * time.Second):
				t.Fatal("not cancelled")
			}

			ctx, cancel = context.WithTimeout(context.Background(), 10*time.Millisecond)
			defer cancel()
			refused(t, wait(ctx), context.DeadlineExceeded)
			refused(t, wait(ctx), context.DeadlineExceeded) // ended before it began
		})
	}
	// And all of them still work.
	must(t, client.id.Disconnect())
	expect(t, server.id, EventDisconnected, 0)
}

// drainAsyncEvents reads what earlier tests, or the network, have caused.
func drainAsyncEvents(t *testing.T, device *Device) {
	t.Helper()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		_, err := device.WaitAsyncEvent(ctx, anyEvent)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		must(t, err)
	}
}

func TestCreateEPCancelled(t *testing.T) {
	p := opened(t)
	channel := newChannel(t, p)
	before := p.Live()[KindID]
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := channel.CreateEP(ctx, EPConfig{Destination: here(t, 1), QP: &usualQP})
	refused(t, err, context.Canceled)
	if after := p.Live()[KindID]; after != before {
		t.Errorf("%d ids were left behind", after-before)
	}
}

// TestManyWaiters: each goroutine that waits on one channel gets the events of its own id. One that is cancelled while
// it reads for the others passes that on.
func TestManyWaiters(t *testing.T) {
	p := opened(t)
	channel := newChannel(t, p)
	impatient, cancel := context.WithCancel(context.Background())
	defer cancel()
	idle, err := channel.CreateID(PortSpaceTCP)
	must(t, err)
	atEnd(t, idle.Destroy)
	quit := make(chan error, 1)
	go func() {
		_, err := channel.Wait(impatient, idle)
		quit <- err
	}()

	address := here(t, 1)
	var all sync.WaitGroup
	for range 16 {
		all.Add(1)
		go func() {
			defer all.Done()
			for range 20 {
				if err := resolve(bounded(t), channel, address); err != nil {
					t.Error(err)
					return
				}
			}
		}()
	}
	cancel()
	all.Wait()
	refused(t, <-quit, context.Canceled)
	if events, err := channel.Pending(); err != nil || len(events) != 0 {
		t.Errorf("left over: %v, %v", events, err)
	}
}

// resolve makes an id, takes it to ROUTE_RESOLVED and destroys it.
func resolve(ctx context.Context, channel *EventChannel, address netip.AddrPort) error {
	id, err := channel.CreateID(PortSpaceTCP)
	if err != nil {
		return err
	}
	err = func() error {
		if err := id.ResolveAddr(netip.AddrPort{}, address, time.Second); err != nil {
			return err
		}
		if err := await(ctx, id, EventAddrResolved); err != nil {
			return err
		}
		if err := id.ResolveRoute(time.Second); err != nil {
			return err
		}
		return await(ctx, id, EventRouteResolved)
	}()
	return errors.Join(err, id.Destroy())
}

// TestPending takes what others left, and what waits in the channel, in order.
func TestPending(t *testing.T) {
	p := opened(t)
	channel := newChannel(t, p)
	var ids []*ID
	for range 3 {
		id, err := channel.CreateID(PortSpaceTCP)
		must(t, err)
		atEnd(t, id.Destroy)
		must(t, id.ResolveAddr(netip.AddrPort{}, here(t, 1), time.Second))
		ids = append(ids, id)
	}
	expect(t, ids[1], EventAddrResolved, 0)
	var events []*Event
	for len(events) < 2 {
		more, err := channel.Pending()
		must(t, err)
		if events = append(events, more...); len(events) < 2 {
			readable(t, channel)
		}
	}
	if len(events) != 2 || events[0].ID != ids[0] || events[1].ID != ids[2] {
		t.Errorf("%d events", len(events))
	}
	if events, err := channel.Pending(); err != nil || events != nil {
		t.Errorf("again %v, %v", events, err)
	}
}

// TestCompletionEvents: one event a request, and none for what was there before (ibv_req_notify_cq(3)).
func TestCompletionEvents(t *testing.T) {
	client, server := connected(t)
	for round := range uint64(3) {
		must(t, server.id.RecvCQ().RequestNotify(false))
		server.recv(t, round, 0, 64)
		client.send(t, SendWR{WRID: round, Opcode: OpSend, Flags: SendSignaled}, 0, 64)
		must(t, server.id.RecvCQ().WaitEvent(bounded(t)))
		completion(t, server.id.RecvCQ(), round, WCSuccess)
		completion(t, client.id.SendCQ(), round, WCSuccess)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if err := server.id.RecvCQ().WaitEvent(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an event without request: %v", err)
	}

	// What is there already comes without waiting.
	must(t, server.id.RecvCQ().RequestNotify(false))
	server.recv(t, 9, 0, 64)
	client.send(t, SendWR{WRID: 9, Opcode: OpSend, Flags: SendSignaled}, 0, 64)
	completion(t, client.id.SendCQ(), 9, WCSuccess)
	must(t, server.id.RecvCQ().WaitEvent(ctx))
	completion(t, server.id.RecvCQ(), 9, WCSuccess)
}

// TestAsyncEvent: an access error at the target raises QP_ACCESS_ERR there, with the QP.
func TestAsyncEvent(t *testing.T) {
	softOnly(t, "events of refused requests")
	client, server := connected(t)
	client.send(t, SendWR{WRID: 1, Opcode: OpRDMAWrite, Flags: SendSignaled, RKey: 1}, 0, 64)
	completion(t, client.id.SendCQ(), 1, WCRemAccessErr)
	ctx := bounded(t)
	for {
		event, err := server.id.Device().WaitAsyncEvent(ctx, anyEvent)
		must(t, err)
		if event.QP == server.id.QP() { // others are of QPs of earlier tests
			if event.Type != AsyncQPAccessErr {
				t.Errorf("event %s", event.Type)
			}
			return
		}
	}
}

func TestWaitArguments(t *testing.T) {
	client, _ := connected(t)
	_, err := client.id.SendCQ().Wait(bounded(t), nil)
	refused(t, err, syscall.EINVAL)
	if n, err := client.id.SendCQ().Poll(nil); n != 0 || err != nil {
		t.Errorf("poll for nothing: %d, %v", n, err)
	}
}

// TestBackOff: the slices of a wait grow to a limit. Then the sleeps between them begin, and grow to a limit, too.
func TestBackOff(t *testing.T) {
	pace := newBackOff()
	for slice := range spinSlices {
		if slice == 0 && pace.attempts != firstAttempts || pace.attempts > maxAttempts {
			t.Fatalf("slice %d has %d attempts", slice, pace.attempts)
		}
		if pause := pace.next(); pause != 0 {
			t.Fatalf("a sleep of %s after slice %d", pause, slice)
		}
	}
	if pace.attempts != maxAttempts {
		t.Errorf("slices grow to %d attempts", pace.attempts)
	}
	for want := firstSleep; want < maxSleep; want *= 2 {
		if pause := pace.next(); pause != want {
			t.Errorf("a sleep of %s, not %s", pause, want)
		}
	}
	for range 100 {
		if pause := pace.next(); pause != maxSleep || pace.attempts != maxAttempts {
			t.Fatalf("a sleep of %s, %d attempts", pause, pace.attempts)
		}
	}
	if maxSleep > time.Millisecond {
		t.Error("a completion may wait for longer than 1 ms")
	}
}
