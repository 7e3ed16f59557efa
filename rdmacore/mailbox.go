package rdmacore

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// errNothing is read's "nothing more to read".
var errNothing = errors.New("nothing to read")

// mailbox distributes what comes on one descriptor to any number of goroutines. Each waits for some items. One of
// them, the leader, reads the descriptor and passes items to the others; when it leaves, another one leads. Items for
// which no goroutine waits are kept in order, up to a limit. Without one, a goroutine that reads for itself could
// store any number of items that others do not read.
//
// On a virtual clock every wait reads for itself, and there is no leader.
type mailbox[K comparable, T any] struct {
	clock *Clock
	// descriptor returns what to wait on, and its name in errors.
	descriptor func() (fd int, name string)
	// read takes the next item from the descriptor, with mu held: false for one to drop,
	// errNothing when there is none.
	read func() (item T, ok bool, err error)
	// key groups items to count them: by their receiver, or by their kind.
	key func(T) K
	// full reports that an item does not fit next to the kept ones with its key; drop releases it.  Both with mu
	// held.
	full   func(alike int, item T) bool
	drop   func(item T)
	waiter lazyWaiter

	// mu guards the rest.  It is also held from reading a thing to handing it out.
	mu      sync.Mutex
	queue   []T           // kept items, in order
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

// handed is what a waiting goroutine gets: an item, or the lead.
type handed[T any] struct {
	item T
	lead bool
}

// watch is what waits for the descriptor.
func (m *mailbox[K, T]) watch() (*fdWaiter, error) { return m.waiter.get(m.clock, m.descriptor) }

// next waits for the next item that wants accepts; false when ctx has ended or the descriptor is closed.  The goroutine
// that reads calls wants, with mu held, and not after next has returned.
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
			// A caller of pending, which does not wait, may have read what w wants between w's promotion and now.
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

// seek is dequeue for several calls, with mu held from the first to the last.  It looks at each kept item once;
// a goroutine that reads many items for others would otherwise look at all of them after each.
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

// drain reads and hands out until enough is true; errNothing when there is nothing more.  The caller holds mu.
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

// deliver hands an item to the first goroutine that accepts it, or keeps it.
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

// keep appends an item that no goroutine waits for.  The caller holds mu, here and below.
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

// any, has and matching look at the kept items, for ready.
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

// ready reads until found finds enough among the kept items, and returns its result.
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

// hand gives an item to the first goroutine that accepts it.  That one leaves the list at once: it must not be promoted
// any more, for it does not look again.
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

// pending takes every available item that wants accepts, without waiting. It takes from those that were kept, and from
// those that it reads until enough is true.
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
