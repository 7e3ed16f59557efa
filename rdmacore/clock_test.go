package rdmacore

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// openVirtual opens a soft provider of its own with a virtual clock.  The fabric is soft's whatever the
// tests run on, so there is nothing to ask a kernel.
func openVirtual(t *testing.T, seed uint64) *Provider {
	t.Helper()
	softOnly(t, "faults")
	p, err := Open("soft", WithVirtualClock(), WithSeed(seed))
	must(t, err)
	t.Cleanup(func() { must(t, p.Close()) })
	return p
}

// virtualPair is a connected pair on a soft provider of its own with a virtual clock.  The client's sends
// are retried rnrRetries times when the server is not ready.
func virtualPair(t *testing.T, rnrRetries uint8) (p *Provider, client, server *side) {
	t.Helper()
	p = openVirtual(t, 1)
	server = newSide(t, p)
	client = newSide(t, p)
	listener := listen(t, server, &usualQP)
	request(t, client, listener, usualQP, &usualParam)
	server.id = expect(t, listener, EventConnectRequest, 0).ID
	accept := usualParam
	accept.RNRRetryCount = rnrRetries
	must(t, server.id.Accept(&accept))
	expect(t, client.id, EventEstablished, 0)
	expect(t, server.id, EventEstablished, 0)
	return p, client, server
}

func TestVirtualClockRNRIsExact(t *testing.T) {
	p, client, _ := virtualPair(t, 2)
	began, wall := p.Clock().Now(), time.Now()
	client.send(t, SendWR{WRID: 1, Opcode: OpSend, Flags: SendSignaled}, 0, 64)
	wcs := make([]WC, 1)
	_, err := client.id.SendCQ().Wait(bounded(t), wcs)
	must(t, err)
	if wcs[0].Status != WCRNRRetryExcErr {
		t.Errorf("status %s", wcs[0].Status)
	}
	// Two retries, each after the RNR timer 0: IBTA table 45.
	if took, want := p.Clock().Now()-began, 2*655360*time.Microsecond; took != want {
		t.Errorf("took %s on the virtual clock, want %s", took, want)
	}
	t.Logf("%s on the wall", time.Since(wall))
}

func TestVirtualClockReachesDeadlines(t *testing.T) {
	p, client, _ := virtualPair(t, 7)
	clock := p.Clock()
	began := clock.Now()
	ctx, cancel := clock.WithTimeout(bounded(t), time.Hour)
	defer cancel()
	if _, err := client.channel.Wait(ctx, client.id); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an event wait ended with %v", err)
	}
	if took := clock.Now() - began; took != time.Hour {
		t.Errorf("took %s on the virtual clock, want an hour", took)
	}
	must(t, clock.Sleep(bounded(t), time.Minute))
	if took := clock.Now() - began; took != time.Hour+time.Minute {
		t.Errorf("after a pause %s", took)
	}
}

// Two who act: the clock does not move while one of them does not wait.
func TestVirtualClockWaitsForAllWhoAct(t *testing.T) {
	p, client, server := virtualPair(t, 7)
	clock := p.Clock()
	clock.Enter()
	clock.Enter()
	defer clock.Leave()
	began := clock.Now()
	received := make(chan error, 1)
	go func() {
		defer clock.Leave()
		ctx, cancel := clock.WithTimeout(bounded(t), time.Second)
		defer cancel()
		_, err := server.id.RecvCQ().Wait(ctx, make([]WC, 1))
		received <- err
	}()
	time.Sleep(20 * time.Millisecond) // long enough for a clock that ran ahead
	if took := clock.Now() - began; took != 0 {
		t.Errorf("the clock moved by %s", took)
	}
	// nothing is posted: an RNR wait of 655.36 ms
	client.send(t, SendWR{WRID: 1, Opcode: OpSend, Flags: SendSignaled}, 0, 64)
	server.recv(t, 2, 0, 64)
	_, err := client.id.SendCQ().Wait(bounded(t), make([]WC, 1))
	must(t, err)
	clock.Outside(func() { must(t, <-received) })
	if took := clock.Now() - began; took != 655360*time.Microsecond {
		t.Errorf("took %s", took)
	}
}

func TestVirtualClockWaitIsCancelled(t *testing.T) {
	_, client, _ := virtualPair(t, 7)
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(10*time.Millisecond, cancel)
	if _, err := client.id.RecvCQ().Wait(ctx, make([]WC, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

// sleepTogether launches several goroutines that sleep until the same times, and returns the order in which they
// continued.
func sleepTogether(t *testing.T, clock *Clock) string {
	t.Helper()
	clock.Enter()
	var order strings.Builder // one acts at a time, so it needs no lock
	var ended []<-chan struct{}
	for _, name := range strings.Split("abcdef", "") {
		ended = append(ended, clock.Launch(func() {
			for range 3 {
				must(t, clock.Sleep(bounded(t), time.Second))
				order.WriteString(name)
			}
		}))
	}
	clock.Leave()
	for _, each := range ended {
		<-each
	}
	return order.String()
}

// Without a seed, goroutines that wait for the same time continue one at a time, in the order of their launches.
func TestVirtualClockOrder(t *testing.T) {
	softOnly(t, "faults")
	p, err := Open("soft", WithVirtualClock())
	must(t, err)
	defer func() { must(t, p.Close()) }()
	for range 50 {
		if order := sleepTogether(t, p.Clock()); order != strings.Repeat("abcdef", 3) {
			t.Fatalf("order %s", order)
		}
	}
}

// A deadline of the clock does not end a wait before its turn, however long another goroutine computes.
func TestVirtualClockDeadlinesKeepTurns(t *testing.T) {
	clock := openVirtual(t, 1).Clock()
	clock.Enter()
	var acting, together atomic.Int32
	var ended []<-chan struct{}
	for range 3 {
		ended = append(ended, clock.Launch(func() {
			must(t, clock.Sleep(bounded(t), time.Second))
			if acting.Add(1) > 1 {
				together.Add(1)
			}
			time.Sleep(turnTimeout + turnTimeout/2) // computes
			acting.Add(-1)
		}))
	}
	clock.Leave()
	for _, each := range ended {
		<-each
	}
	if together.Load() != 0 {
		t.Error("two continued at once")
	}
}

// awaitTogether launches several goroutines that wait for one signal, and returns the order in which they continued.
func awaitTogether(t *testing.T, clock *Clock) string {
	t.Helper()
	clock.Enter()
	var went strings.Builder // by one at a time
	begin := make(chan struct{})
	var ended []<-chan struct{}
	for _, name := range strings.Split("abcdef", "") {
		ended = append(ended, clock.Launch(func() {
			must(t, clock.Await(bounded(t), begin, nil))
			went.WriteString(name)
		}))
	}
	close(begin)
	clock.Leave()
	for _, each := range ended {
		<-each
	}
	return went.String()
}

// A seed draws the order of those that can continue at the same time, the same each time.
func TestVirtualClockInterleavings(t *testing.T) {
	for name, order := range map[string]func(*testing.T, *Clock) string{
		"signal": awaitTogether, "time": sleepTogether,
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for seed := range uint64(20) {
				once := order(t, openVirtual(t, seed).Clock())
				again := order(t, openVirtual(t, seed).Clock())
				if once != again {
					t.Errorf("seed %d: %s, and then %s", seed, once, again)
				}
				seen[once] = true
			}
			if len(seen) < 10 {
				t.Errorf("20 seeds are %d interleavings", len(seen))
			}
		})
	}
}

func TestClockAwait(t *testing.T) {
	for name, clock := range map[string]*Clock{"virtual": openVirtual(t, 1).Clock(), "wall": opened(t).Clock()} {
		t.Run(name, func(t *testing.T) {
			clock.Enter()
			signal, ended := make(chan struct{}), make(chan error, 1)
			clock.Launch(func() { ended <- clock.Await(bounded(t), signal, nil) })
			close(signal)
			clock.Outside(func() { must(t, <-ended) })
			ctx, cancel := clock.WithTimeout(bounded(t), time.Millisecond)
			defer cancel()
			if err := clock.Await(ctx, make(chan struct{}), nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a signal that does not come: %v", err)
			}
			clock.Leave()
		})
	}
}

func TestVirtualClockIsSoftsOwn(t *testing.T) {
	if _, err := Open("verbs", WithVirtualClock()); !errors.Is(err, syscall.EOPNOTSUPP) {
		t.Errorf("verbs with a virtual clock: %v", err)
	}
}
