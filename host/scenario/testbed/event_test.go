package testbed

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"rdmarun/rdmacore"
)

var addressV6 = netip.MustParseAddr("2001:db8::1")

// TestWaitAsync takes the events of a device that goes away and comes back, each once and in whatever order steps do
// it.
func TestWaitAsync(t *testing.T) {
	remove := func(t *testing.T, l *Testbed) *Fault {
		fault, err := l.RemoveDevice(nil)
		if err != nil {
			t.Fatal(err)
		}
		return fault
	}
	restore := func(t *testing.T, l *Testbed) {
		if _, err := remove(t, l).Heal(); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name   string
		before func(t *testing.T, l *Testbed)
		beside func(t *testing.T, l *Testbed) // while the role waits
	}{
		{"it is gone", func(t *testing.T, l *Testbed) { remove(t, l) }, nil},
		{"it is back", restore, nil},
		{"it goes while the role waits", nil, func(t *testing.T, l *Testbed) { remove(t, l) }},
		{"it goes and comes back while the role waits", nil, restore},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := newTestbed(t, &lines{}, nil)
			role := l.roles[0]
			if test.before != nil {
				test.before(t, l)
			}
			waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			done := make(chan struct{})
			go func() {
				defer close(done)
				l.Lock()
				defer l.Unlock()
				if event, ok, err := role.WaitAsync(waiting); err != nil || !ok ||
					event.Type != rdmacore.AsyncDeviceFatal {
					t.Errorf("%v, %t, %v, want DEVICE_FATAL", event.Type, ok, err)
				}
			}()
			if test.beside != nil {
				test.beside(t, l)
			}
			l.Unlocked(func() { <-done })
			ended, end := context.WithCancel(t.Context())
			end()
			if event, ok, err := role.WaitAsync(ended); ok || err != nil {
				t.Errorf("a second event: %v, %t, %v", event.Type, ok, err)
			}
		})
	}
}

// TestLostEvents: an unread event is a leftover of its device or object, also when that is destroyed first.
func TestLostEvents(t *testing.T) {
	l := newTestbed(t, &lines{}, nil)
	fault, err := l.RemoveDevice(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fault.Heal(); err != nil {
		t.Fatal(err)
	}
	if found := l.Leftovers(); len(found) != 1 || found[0] != "soft0: an asynchronous event: DEVICE_FATAL" {
		t.Errorf("%q, want the event of the device", found)
	}
	if found := l.Leftovers(); len(found) != 0 {
		t.Errorf("%q was reported already", found)
	}
}

// TestOwners: objects belong to the role that made them until they are destroyed; those of no role here have no owner.
func TestOwners(t *testing.T) {
	l, from, to := twoRoles(t)
	queue, err := from.NewQueue(4)
	if err != nil {
		t.Fatal(err)
	}
	queue.Bind("q")
	event := rdmacore.AsyncEvent{Type: rdmacore.AsyncCQErr, CQ: queue.Native()}
	foreign := rdmacore.AsyncEvent{Type: rdmacore.AsyncCQErr, CQ: new(rdmacore.CQ)}
	port := rdmacore.AsyncEvent{Type: rdmacore.AsyncPortErr, Port: 1}
	for _, test := range []struct {
		name     string
		event    rdmacore.AsyncEvent
		from, to bool // who may take it
		where    string
	}{
		{"its own queue", event, true, false, "driver q"},
		{"a guest's queue", foreign, false, false, ""},
		{"a port", port, true, true, ""},
	} {
		if from.accepts(test.event) != test.from || to.accepts(test.event) != test.to {
			t.Errorf(
				"%s: taken by driver: %t, by peer: %t", test.name, from.accepts(test.event), to.accepts(test.event),
			)
		}
		if endpoint, where := l.subject(test.event); endpoint != nil || where != test.where {
			t.Errorf("%s: is of %v, %q, want %q", test.name, endpoint, where, test.where)
		}
	}
	found := l.unreadAsync(from.device, []rdmacore.AsyncEvent{event, {Type: rdmacore.AsyncCommEst}, port})
	if len(found) != 2 || found[0] != "driver q: an asynchronous event: CQ_ERR" ||
		!strings.HasPrefix(found[1], "soft0: ") {
		t.Errorf("%q, want the events that are faults, and where", found)
	}
	if err := queue.Free(); err != nil {
		t.Fatal(err)
	}
	if from.accepts(event) {
		t.Error("the event of a queue that is freed is still taken")
	}
}

// TestHeldEvents: an event that is held keeps its id alive until it is acknowledged, which is done once.
func TestHeldEvents(t *testing.T) {
	l := newTestbed(t, &lines{}, nil)
	role := l.roles[0]
	if err := role.HoldEvents(true); err != nil {
		t.Fatal(err)
	}
	id, err := role.channel.CreateID(rdmacore.PortSpaceTCP)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := role.Adopt("id", id)
	if err := id.ResolveAddr(netip.AddrPort{}, netip.AddrPortFrom(role.address, 7471), time.Minute); err != nil {
		t.Fatal(err)
	}
	waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	event, err := role.channel.Wait(waiting, id)
	if err != nil {
		t.Fatal(err)
	}
	role.Read(event)
	if err := endpoint.DestroyID(); !errors.Is(err, syscall.EBUSY) {
		t.Errorf("destroy an id with an event that is held: %v, want EBUSY", err)
	}
	if err := role.AckEvent(endpoint); err != nil {
		t.Errorf("acknowledge: %v", err)
	}
	var failure *Failure
	if err := role.AckEvent(endpoint); !errors.As(err, &failure) || !errors.Is(err, syscall.EINVAL) {
		t.Errorf("acknowledge again: %v, want a failure with EINVAL", err)
	}
	if err := endpoint.DestroyID(); err != nil {
		t.Errorf("destroy the id: %v", err)
	}
}
