package rdmacore

import (
	"maps"
	"net/netip"
	"testing"
	"time"
)

// A goroutine that reads for one endpoint keeps no more requests of another than its backlog; the rest are rejected.
func TestKeptRequestsAreBounded(t *testing.T) {
	const backlog, clients = 2, 5
	p := opened(t)
	passive, err := p.CreateEventChannel()
	must(t, err)
	active, err := p.CreateEventChannel()
	must(t, err)
	listener, err := passive.CreateID(PortSpaceTCP)
	must(t, err)
	must(t, listener.BindAddr(here(t, 0)))
	must(t, listener.Listen(backlog))
	other, err := passive.CreateID(PortSpaceTCP)
	must(t, err)

	var ids []*ID
	for n := range clients {
		id, err := active.CreateEP(bounded(t), EPConfig{PortSpace: PortSpaceTCP, Timeout: 2 * time.Second,
			Destination: netip.AddrPortFrom(here(t, 0).Addr(), listener.SrcPort())})
		must(t, err)
		must(t, id.Connect(&ConnParam{QPNum: uint32(4000 + n)}))
		ids = append(ids, id)
		waitRead(t, passive, other, min(n+1, backlog), n >= backlog, id)
	}
	for range backlog {
		event, err := passive.Poll(listener)
		must(t, err)
		if event == nil || event.Type != EventConnectRequest {
			t.Fatalf("of %d requests there is no other: %+v", backlog, event)
		}
		must(t, event.ID.Destroy())
	}
	if event, err := passive.Poll(listener); event != nil || err != nil {
		t.Errorf("after the backlog: %+v, %v", event, err)
	}
	for _, id := range append(ids, listener, other) {
		must(t, id.Destroy())
	}
	must(t, passive.Close())
	must(t, active.Close())
}

// waitRead reads for other until kept requests are kept or, when one too many was sent, its sender has heard of it.
func waitRead(t *testing.T, channel *EventChannel, other *ID, kept int, tooMany bool, sender *ID) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("nothing came")
		}
		if event, err := channel.Poll(other); event != nil || err != nil {
			t.Fatalf("of the one who nothing happened to: %+v, %v", event, err)
		}
		channel.mu.Lock()
		count := len(channel.queue)
		channel.mu.Unlock()
		if count > kept {
			t.Fatalf("%d requests are kept, and the backlog is %d", count, kept)
		}
		if !tooMany {
			if count == kept {
				return
			}
			continue
		}
		event, err := sender.Channel().Poll(sender)
		must(t, err)
		if event != nil {
			if event.Type != EventRejected {
				t.Fatalf("%s of a request beyond the backlog", event.Type)
			}
			return
		}
	}
}

// The number of unread events of one kind and object that are kept is bounded.
func TestKeptAsyncEventsAreBounded(t *testing.T) {
	_, client, server := virtualPair(t, 7) // the list is Go's own, for events of any provider
	defer server.destroy(t)
	defer client.destroy(t)
	qp, device := client.id.QP(), client.id.Device()
	none := func(AsyncEvent) bool { return false }
	for range 3 * maxAlike {
		must(t, qp.Modify(QPAttr{State: QPStateSQD, EnSQDAsyncNotify: true}, QPAttrState|QPAttrEnSQDAsyncNotify))
		must(t, qp.Modify(QPAttr{State: QPStateRTS}, QPAttrState))
		if _, err := device.PendingAsyncEvents(none); err != nil {
			t.Fatal(err)
		}
	}
	events, err := device.PendingAsyncEvents(func(e AsyncEvent) bool { return e.QP == qp })
	must(t, err)
	if len(events) != maxAlike {
		t.Errorf("%d events are kept", len(events))
	}
}

// A goroutine that reads many items for others looks at each once.
func TestReadingForOthersIsLinear(t *testing.T) {
	const most = 10_000
	type box = mailbox[int, int]
	for name, look := range map[string]func(m *box, wants func(int) bool){
		"poll":    func(m *box, wants func(int) bool) { m.poll(wants) },
		"ready":   func(m *box, wants func(int) bool) { m.ready(m.matching(wants)) },
		"pending": func(m *box, wants func(int) bool) { m.pending(wants, func() bool { return false }) },
	} {
		read, asked := 0, 0
		m := &box{
			key: func(item int) int { return item },
			read: func() (int, bool, error) {
				if read == most {
					return 0, false, errNothing
				}
				read++
				return read, true, nil
			},
			full: func(int, int) bool { return false },
		}
		look(m, func(int) bool { asked++; return false })
		if len(m.queue) != most || asked > 2*most {
			t.Errorf("%s: %d are kept, of %d, and looked at %d times", name, len(m.queue), most, asked)
		}
	}
}

// The counts by key are those of the queue, whatever took items out of it.
func TestCountsOfAMailbox(t *testing.T) {
	items := []int{1, 2, 3, 11, 12, 21, 4}
	m := &mailbox[int, int]{
		key:  func(item int) int { return item % 10 },
		full: func(alike, _ int) bool { return alike == 2 },
		drop: func(int) {},
	}
	m.read = func() (item int, ok bool, err error) {
		if len(items) == 0 {
			return 0, false, errNothing
		}
		item, items = items[0], items[1:]
		return item, true, nil
	}
	step := func(what string, wants map[int]int) {
		t.Helper()
		if !maps.Equal(m.counts, wants) {
			t.Fatalf("%s: %v are kept, counted as %v", what, m.queue, m.counts)
		}
		for key, count := range wants {
			if there, err := m.ready(m.has(key)); !there || err != nil {
				t.Errorf("%s: %d of key %d are not ready: %v", what, count, key, err)
			}
		}
		if there, err := m.ready(m.has(9)); there || err != nil {
			t.Errorf("%s: key 9 is ready, %v", what, err)
		}
	}
	if there, err := m.ready(m.has(4)); !there || err != nil {
		t.Fatal(there, err)
	}
	step("of three that end in 1 one is dropped", map[int]int{1: 2, 2: 2, 3: 1, 4: 1})
	if item, came, err := m.poll(func(item int) bool { return item == 11 }); item != 11 || !came || err != nil {
		t.Fatal(item, came, err)
	}
	step("polled", map[int]int{1: 1, 2: 2, 3: 1, 4: 1})
	if taken, err := m.pending(func(item int) bool { return item < 3 }, func() bool {
		return true
	}); len(taken) != 2 || err != nil {
		t.Fatal(taken, err)
	}
	step("taken", map[int]int{2: 1, 3: 1, 4: 1})
	m.discard(func(item int) bool { return item == 12 })
	step("discarded", map[int]int{3: 1, 4: 1})
}
