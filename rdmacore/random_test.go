package rdmacore

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// randomTime is the environment variable that has TestRandomCalls go on for so long ("60s").
const randomTime = "RDMARUN_RANDOM_TIME"

// TestRandomCalls drives both ends of connections with any calls in any state. The objects exist, are nil, destroyed
// or of another provider. Each call returns with an errno or without error. No id gets an event that its state does
// not allow, and nothing is left at the end. What fails is made small and printed with the command that replays it.
//
// On a kernel it runs only on request. On Linux rdma_destroy_id waits, uninterruptibly and for minutes, for messages
// of the id that are still in flight (cm_destroy_id, seen on 6.1).
func TestRandomCalls(t *testing.T) {
	if os.Getenv(randomTime) == "" {
		softOnly(t, "messages that are taken back")
	}
	length, err := time.ParseDuration(os.Getenv(randomTime))
	if err != nil && os.Getenv(randomTime) != "" {
		t.Fatal(err)
	}
	reached := make(map[EventType]int)
	// Few calls at random connect, so there is no saying how many it takes; a hundred checks without are wrong.
	for end, checks := time.Now().Add(length), 1; ; checks++ {
		t.Run("round", func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { randomRound(t, reached) }) })
		if t.Failed() {
			return
		}
		if !time.Now().Before(end) && (reached[EventEstablished] > 0 || checks == 100) {
			break
		}
	}
	// Else the calls were too wild to prove much.
	for _, event := range []EventType{EventConnectRequest, EventEstablished} {
		if reached[event] == 0 {
			t.Errorf("no call led to %s; reached: %v", event, reached)
		}
	}
	t.Log(reached)
}

func randomRound(t *rapid.T, reached map[EventType]int) {
	w := newRandomWorld(t)
	w.reached = reached
	defer w.end(t)
	t.Repeat(w.actions())
}

// randomWorld is what the calls are made on.  Each pool begins with nil.
type randomWorld struct {
	p, other *Provider
	address  netip.Addr
	memory   *Memory
	channels []*EventChannel
	ids      []*ID
	pds      []*PD
	cqs      []*CQ
	mrs      []*MR
	events   []*Event
	// Listeners that were asked for a connection by a call that means it.
	requested []*ID
	history   map[*ID]map[EventType]int
	reached   map[EventType]int // by all rounds
}

func newRandomWorld(t *rapid.T) *randomWorld {
	w := &randomWorld{channels: []*EventChannel{nil}, ids: []*ID{nil}, pds: []*PD{nil}, cqs: []*CQ{nil},
		mrs: []*MR{nil}, events: []*Event{nil}, history: make(map[*ID]map[EventType]int)}
	var err error
	if w.p, err = randomProvider(t); err != nil {
		t.Fatal(err)
	}
	if w.other, err = Open("soft"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []*Provider{w.p, w.p, w.other} {
		device, err := p.DefaultDevice()
		if err != nil {
			t.Fatal(err)
		}
		if w.address.IsValid() == false {
			w.address, err = device.Address()
			w.note(t, err)
		}
		channel, err := p.CreateEventChannel()
		w.note(t, err)
		pd, err := device.AllocPD()
		w.note(t, err)
		cq, err := device.CreateCQ(64)
		w.note(t, err)
		extended, err := device.CreateCQEx(64, WCFieldsStandard)
		w.note(t, err)
		w.channels, w.pds, w.cqs = append(w.channels, channel), append(w.pds, pd), append(w.cqs, cq, extended)
	}
	w.memory, err = NewMemory(4096)
	w.note(t, err)
	return w
}

// randomProvider is a soft provider on a virtual clock, where waits take no time; or the one under test.
func randomProvider(t *rapid.T) (*Provider, error) {
	if onSoft("faults") {
		return Open("soft", WithVirtualClock(), WithSeed(rapid.Uint64().Draw(t, "seed")))
	}
	return Open(chosenProvider())
}

// note checks what a call gave: nothing, an errno, or the end of its context.
func (w *randomWorld) note(t *rapid.T, err error) bool {
	if err == nil {
		return true
	}
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno) && errno > 0 && errno < 134:
	case errors.Is(err, context.DeadlineExceeded):
	default:
		t.Fatalf("%v (%T) has no errno", err, err)
	}
	return false
}

// soon is a context that ends on the clock of the one that waits.
func (w *randomWorld) soon(channel *EventChannel) (context.Context, context.CancelFunc) {
	p := channel.Provider()
	if p == nil {
		p = w.p
	}
	return p.Clock().WithTimeout(context.Background(), 3*time.Millisecond)
}

// seen checks an event against those that its id had before.
func (w *randomWorld) seen(t *rapid.T, event *Event) {
	if event == nil {
		return
	}
	if event.Held() {
		w.events = append(w.events, event)
	}
	if event.ID == nil {
		t.Fatalf("%s of no id", event.Type)
	}
	before := w.history[event.ID]
	if before == nil {
		before = make(map[EventType]int)
		w.history[event.ID] = before
	}
	once := event.Type == EventConnectRequest || event.Type == EventEstablished || event.Type == EventConnectResponse ||
		event.Type == EventRejected || event.Type == EventUnreachable || event.Type == EventTimewaitExit
	switch {
	case once && before[event.Type] > 0:
		t.Fatalf("a second %s", event.Type)
	case event.Type == EventTimewaitExit && before[EventEstablished]+before[EventConnectResponse] == 0 &&
		event.ID.listener == nil:
		t.Fatal("TIMEWAIT_EXIT of an id that was never connected")
	case event.Type == EventConnectRequest && len(before) > 0:
		t.Fatalf("CONNECT_REQUEST of an id that had %v", before)
	}
	before[event.Type]++
	w.reached[event.Type]++
	if event.Type == EventConnectRequest {
		w.ids = append(w.ids, event.ID)
	}
}

// end frees all that is left, and checks that nothing remains.
func (w *randomWorld) end(t *rapid.T) {
	for _, event := range w.events {
		event.Ack()
	}
	for _, cleanup := range [...]func(*ID) error{
		func(id *ID) error {
			if id.QP() == nil {
				return nil
			}
			return id.DestroyQP()
		},
		func(id *ID) error {
			if id.SRQ() == nil {
				return nil
			}
			return id.DestroySRQ()
		},
		func(id *ID) error {
			if id.Listening() { // after the children, which may hold its requests
				return nil
			}
			return id.Destroy()
		},
		(*ID).Destroy,
	} {
		for _, id := range w.ids {
			if id.open() {
				fatal(t, cleanup(id))
			}
		}
	}
	for _, mr := range w.mrs {
		closeOpen(t, mr != nil && mr.c != nil, mr.Dereg)
	}
	for _, cq := range w.cqs {
		closeOpen(t, cq.open(), cq.Destroy)
	}
	for _, pd := range w.pds {
		closeOpen(t, pd != nil && pd.c != nil, pd.Dealloc)
	}
	for _, channel := range w.channels {
		closeOpen(t, channel.open(), channel.Close)
	}
	w.memory.Release()
	fatal(t, w.p.Close()) // EBUSY if anything lives
	fatal(t, w.other.Close())
}

func closeOpen(t *rapid.T, open bool, free func() error) {
	if open {
		fatal(t, free())
	}
}

func fatal(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}
