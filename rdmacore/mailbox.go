package rdmacore

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errNothing is read's "nothing more to read".
var errNothing = errors.New("nothing to read")

// mailbox hands out what comes on one descriptor to any number of goroutines, each of which wants its part.  One
// of them, the leader, reads the descriptor and hands things to the others; when it leaves, another one leads.
// What nobody wants yet is kept, in order, and not without end: who reads for one may not become the memory of what
// everybody else does not read.
//
// On a virtual clock every wait looks for itself and nobody leads.
type mailbox[K comparable, T any] struct {
	clock *Clock
	// descriptor tells what to wait on, and what it is called in errors.
	descriptor func() (fd int, name string)
	// read takes the next thing from the descriptor, with mu held: false for one that is for nobody any more,
	// errNothing when there is none.
	read func() (item T, ok bool, err error)
	// key is what an item is counted by: whom it is for, or what is alike.
	key func(T) K
	// full tells that there is no room for an item beside those with its key that are kept, and drop lets go of it,
	// with mu held.
	full   func(alike int, item T) bool
	drop   func(item T)
	waiter lazyWaiter

	// mu guards the rest.  It is also held from reading a thing to handing it out.
	mu      sync.Mutex
	queue   []T           // what nobody wanted, in order
	counts  map[K]int     // of queue by key, without zeros, so that asking for one key does not look at all
	waiting []*waiting[T] // in order of arrival
	led     bool          // one of waiting reads the descriptor
	// watching are called when something is kept: Pollers, which wait for several mailboxes at once.
	watching map[*Poller]func()
}

// waiting is one call of next.
type waiting[T any] struct {
	wants func(T) bool
	got   chan handed[T] // room for one
}

// handed is what one who waits is given: an item, or the lead.
type handed[T any] struct {
	item T
	lead bool
}

// watch is what waits for the descriptor.
func (m *mailbox[K, T]) watch() (*fdWaiter, error) { return m.waiter.get(m.clock, m.descriptor) }

// next waits for the next item that wants accepts; false when ctx has ended or the descriptor is closed.  wants is
// called by whoever reads, with mu held, and not any more when next has returned.
func (m *mailbox[K, T]) next(ctx context.Context, wants func(T) bool) (item T, came bool, err error) {
	if m.clock.Virtual() {
		return m.nextVirtually(ctx, wants)
	}
	w := &waiting[T]{wants: wants, got: make(chan handed[T], 1)}
	m.mu.Lock()
	if item, ok := m.dequeue(wants); ok {
		m.mu.Unlock()
		return item, true, nil
	}
	if ctx.Err() != nil {
		m.mu.Unlock()
		return item, false, nil
	}
	m.waiting = append(m.waiting, w)
	lead := !m.led
	m.led = true
	m.mu.Unlock()

	if !lead {
		select {
		case h := <-w.got:
			if !h.lead {
				return h.item, true, nil
			}
			lead = true
		case <-ctx.Done():
		}
	}
	if lead {
		err = m.lead(ctx, w)
	}
	if item, came = m.leave(w, lead); came {
		return item, true, nil
	}
	return item, false, err
}

// nextVirtually is next on a virtual clock.
func (m *mailbox[K, T]) nextVirtually(ctx context.Context, wants func(T) bool) (item T, came bool, err error) {
	m.clock.virtual.wait(ctx, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		item, came, err = m.poll(wants)
		return err != errNothing
	})
	if err == errNothing {
		err = nil
	}
	return item, came, err
}

// poll takes the first item that wants accepts of what has come by now; errNothing when there is none.  The caller
// holds mu.
func (m *mailbox[K, T]) poll(wants func(T) bool) (item T, came bool, err error) {
	seek := m.seek(wants)
	err = m.drain(func() bool {
		item, came = seek()
		return came
	})
	return item, came, err
}

// lead reads until something has come for w, ctx ends, or reading fails.
func (m *mailbox[K, T]) lead(ctx context.Context, w *waiting[T]) error {
	waiter, failure := m.watch()
	if failure != nil {
		return failure
	}
	waiter.wait(ctx, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		seek := m.seek(w.wants)
		failure = m.drain(func() bool {
			// Another who does not wait (pending) may have read what w wants between w's promotion and now.
			if len(w.got) == 0 {
				if item, ok := seek(); ok {
					w.got <- handed[T]{item: item}
				}
			}
			return len(w.got) != 0
		})
		return failure != errNothing
	})
	if failure == errNothing {
		return nil
	}
	return failure
}

// leave takes w out, with what it has got meanwhile, and passes on the lead.
func (m *mailbox[K, T]) leave(w *waiting[T], lead bool) (item T, came bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at := slices.Index(m.waiting, w); at >= 0 {
		m.waiting = slices.Delete(m.waiting, at, at+1)
	}
	select {
	case h := <-w.got:
		item, came, lead = h.item, !h.lead, lead || h.lead
	default:
	}
	if lead {
		m.handOver()
	}
	return item, came
}

// handOver makes the first that waits the leader.
func (m *mailbox[K, T]) handOver() {
	m.led = false
	for _, w := range m.waiting {
		if len(w.got) == 0 {
			m.led = true
			w.got <- handed[T]{lead: true}
			return
		}
	}
}

// dequeue takes the first queued item that wants accepts.
func (m *mailbox[K, T]) dequeue(wants func(T) bool) (item T, ok bool) {
	return m.seek(wants)()
}

// seek is dequeue for several calls, with mu held from the first to the last: each item that is kept is looked at once,
// as who reads many things for others would otherwise look at all of them after each.
func (m *mailbox[K, T]) seek(wants func(T) bool) func() (item T, ok bool) {
	looked := 0
	return func() (item T, ok bool) {
		at := slices.IndexFunc(m.queue[looked:], wants)
		if at < 0 {
			looked = len(m.queue)
			return item, false
		}
		at += looked
		item = m.queue[at]
		m.queue = slices.Delete(m.queue, at, at+1)
		m.count(item, -1)
		return item, true
	}
}

// drain reads and hands out until enough says so; errNothing when there is nothing more.  The caller holds mu.
func (m *mailbox[K, T]) drain(enough func() bool) error {
	for !enough() {
		item, ok, err := m.read()
		if err != nil {
			return err
		}
		if ok {
			m.deliver(item)
		}
	}
	return nil
}

// deliver hands an item to the first that wants it, or keeps it.
func (m *mailbox[K, T]) deliver(item T) {
	switch {
	case m.hand(item):
	case m.full(m.counts[m.key(item)], item):
		m.drop(item)
	default:
		m.keep(item)
		for _, kick := range m.watching {
			kick()
		}
	}
}

// keep appends an item that nobody wants yet.  The caller holds mu, here and below.
func (m *mailbox[K, T]) keep(item T) {
	m.queue = append(m.queue, item)
	m.count(item, 1)
}

func (m *mailbox[K, T]) count(item T, change int) {
	if m.counts == nil {
		m.counts = make(map[K]int)
	}
	key := m.key(item)
	if m.counts[key] += change; m.counts[key] == 0 {
		delete(m.counts, key)
	}
}

// discard drops the items that which accepts.
func (m *mailbox[K, T]) discard(which func(T) bool) {
	m.queue = slices.DeleteFunc(m.queue, func(item T) bool {
		if !which(item) {
			return false
		}
		m.count(item, -1)
		return true
	})
}

// any, has and matching tell of what is kept, for ready.
func (m *mailbox[K, T]) any() bool { return len(m.queue) > 0 }

func (m *mailbox[K, T]) has(key K) func() bool { return func() bool { return m.counts[key] > 0 } }

// matching looks at each item once, with mu held from its first call to its last.
func (m *mailbox[K, T]) matching(wants func(T) bool) func() bool {
	looked, is := 0, false
	return func() bool {
		if !is {
			is, looked = slices.ContainsFunc(m.queue[looked:], wants), len(m.queue)
		}
		return is
	}
}

// ready reads until found says that what is kept is enough, and returns what it says then.
func (m *mailbox[K, T]) ready(found func() bool) (bool, error) {
	if err := m.drain(found); err != nil && err != errNothing {
		return found(), err
	}
	return found(), nil
}

// listen has kick called, until stop, whenever something is kept.
func (m *mailbox[K, T]) listen(who *Poller, kick func()) (stop func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watching == nil {
		m.watching = make(map[*Poller]func())
	}
	m.watching[who] = kick
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.watching, who)
	}
}

// hand gives an item to the first that wants it.  Served is out of the list at once: it must not be promoted any more,
// for it will not look again.
func (m *mailbox[K, T]) hand(item T) bool {
	for at, w := range m.waiting {
		if len(w.got) == 0 && w.wants(item) {
			w.got <- handed[T]{item: item}
			m.waiting = slices.Delete(m.waiting, at, at+1)
			return true
		}
	}
	return false
}

// pending takes all that wants accepts of what is there, without waiting: what it reads until enough says so, and
// what was kept.
func (m *mailbox[K, T]) pending(wants func(T) bool, enough func() bool) ([]T, error) {
	err := m.drain(enough)
	if err == errNothing {
		err = nil
	}
	var taken []T
	m.discard(func(item T) bool {
		wanted := wants(item)
		if wanted {
			taken = append(taken, item)
		}
		return wanted
	})
	return taken, err
}
